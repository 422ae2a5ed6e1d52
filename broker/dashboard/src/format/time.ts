// SPDX-License-Identifier: Apache-2.0
// Instants and durations for people: local time on the page, UTC on hover, one form everywhere (ISO, 24 hours), whatever the
// browser's language, so that two operators on the telephone read the same.

/** RFC 3339 text, a Date, or seconds since 1970. */
export type Instant = string | Date | number;

/** Seconds since 1970 with microseconds, which Date alone would cut to milliseconds. */
export function seconds(instant: Instant): number {
  if (typeof instant === "number") return instant;
  if (instant instanceof Date) return instant.getTime() / 1000;
  const fraction = /\.(\d+)/.exec(instant);
  return Date.parse(fraction ? instant.replace(fraction[0], "") : instant) / 1000 + (fraction ? Number(`0.${fraction[1]}`) : 0);
}

/** As the API takes it: RFC 3339, UTC, to the millisecond. */
export function iso(instant: Instant): string {
  return dateOf(instant).toISOString();
}

/** "2026-01-31 14:05:09", in the zone of this machine; without the day when it is today (of `now`). */
export function local(instant: Instant, now?: Instant): string {
  const date = dateOf(instant);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return now !== undefined && dateOf(now).toDateString() === date.toDateString() ? clock : `${day} ${clock}`;
}

/** "2026-01-31 13:05:09.123456 UTC", with the fraction only where there is one */
export function utc(instant: Instant): string {
  const given = typeof instant === "string" ? /\.(\d+)/.exec(instant)?.[1] : undefined;
  const text = dateOf(instant).toISOString();
  const fraction = (given ?? text.slice(20, 23)).replace(/0+$/, "");
  return `${text.slice(0, 10)} ${text.slice(11, 19)}${fraction ? `.${fraction}` : ""} UTC`;
}

/** "in 5 min", "3 h ago", "now" */
export function relative(instant: Instant, now: Instant = new Date()): string {
  const away = seconds(instant) - seconds(now);
  if (Math.abs(away) < 1) return "now";
  const shown = coarse(Math.abs(away));
  return away > 0 ? `in ${shown}` : `${shown} ago`;
}

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

function coarse(lasting: number): string {
  const [name, size] = UNITS.find(([, unit]) => lasting >= unit) ?? ["s", 1];
  return `${Math.floor(lasting / size)}\u202f${name}`;
}

/** 9000 -> "2 h 30 min", 0.25 -> "250 ms": the two largest units */
export function duration(lasting: number | null | undefined): string {
  if (lasting === null || lasting === undefined || Number.isNaN(lasting)) return "–";
  if (lasting < 0) return `−${duration(-lasting)}`;
  if (lasting < 0.001 && lasting > 0) return `${Number((lasting * 1e6).toPrecision(3))}\u202fµs`;
  if (lasting < 1 && lasting > 0) return `${Number((lasting * 1e3).toPrecision(3))}\u202fms`;
  if (lasting < 10) return `${Number(lasting.toPrecision(2))}\u202fs`;
  let rest = Math.round(lasting);
  const parts: string[] = [];
  for (const [name, size] of UNITS) {
    if (rest >= size && parts.length < 2) parts.push(`${Math.floor(rest / size)}\u202f${name}`);
    else if (parts.length > 0) break; // "1 d 5 s" says more than anybody wants to know
    rest %= size;
  }
  return parts.join(" ");
}

/** "2h 30min", "90 s", "1.5d" -> seconds; null when it cannot be read */
export function parseDuration(given: string): number | null {
  const compact = given.toLowerCase().replace(/[\s\u202f\u00a0]/g, "");
  if (!/^(?:\d+(?:\.\d+)?(?:d|h|min|m|s))+$/.test(compact)) return null;
  const sizes: Record<string, number> = { d: 86_400, h: 3_600, min: 60, m: 60, s: 1 };
  return [...compact.matchAll(/(\d+(?:\.\d+)?)(d|h|min|m|s)/g)].reduce(
    (sum, [, digits, unit = "s"]) => sum + Number(digits) * (sizes[unit] ?? 1),
    0,
  );
}

/** For <input type="datetime-local" step="1">, which knows local time without a zone. */
export function toInput(instant: Instant): string {
  return local(instant).replace(" ", "T");
}

/** What such an input holds, as RFC 3339; null while it is incomplete. */
export function fromInput(given: string): string | null {
  const time = given === "" ? Number.NaN : new Date(given).getTime();
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}

function dateOf(instant: Instant): Date {
  return typeof instant === "number" ? new Date(instant * 1000) : new Date(instant);
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
