// SPDX-License-Identifier: Apache-2.0
// Rates and volumes for people: SI prefixes, three significant digits. The exact number belongs on hover.

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];
const THIN = "\u202f"; // narrow, and does not break
const NONE = "–";

function scaled(value: number, unit: string): string {
  const magnitude = Math.abs(value);
  // 999.6 k would be shown as 1000 k: what rounds up to the next prefix takes it.
  let power = 0;
  while (power < PREFIXES.length - 1 && Number((magnitude / 1000 ** power).toPrecision(3)) >= 1000) power += 1;
  const shown = Number((value / 1000 ** power).toPrecision(3));
  return `${shown}${THIN}${PREFIXES[power]}${unit}`;
}

/** 9870000000 -> "9.87 Gbit/s" */
export function rate(bps: number | null | undefined): string {
  return bps === null || bps === undefined || Number.isNaN(bps) ? NONE : scaled(bps, "bit/s");
}

/** 1230000000000 -> "1.23 TB" */
export function volume(bytes: number | null | undefined): string {
  return bytes === null || bytes === undefined || Number.isNaN(bytes) ? NONE : scaled(bytes, "B");
}

/** 1234567 -> "1 234 567", with separators that do not break */
export function exact(value: number): string {
  const [whole = "", fraction] = String(Math.abs(value)).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, THIN);
  return (value < 0 ? "−" : "") + grouped + (fraction === undefined ? "" : `.${fraction}`);
}

/** 0.1234 -> "12.3 %". Something is never shown as nothing, and not quite all never as all. */
export function share(of: number | null | undefined): string {
  if (of === null || of === undefined || Number.isNaN(of)) return NONE;
  const percent = of * 100;
  if (percent > 0 && percent < 0.1) return `<${THIN}0.1${THIN}%`;
  if (percent < 100 && percent > 99.9) return `99.9${THIN}%`;
  return `${Number(percent.toFixed(Math.abs(percent) < 10 ? 2 : 1))}${THIN}%`;
}

/** "10G", "2.5 Gbit/s", "800 mbps", "1e9" -> bit/s; null when it cannot be read. Prefixes are SI; case does not matter. */
export function parseRate(given: string): number | null {
  return parsed(given, /^(?:bit\/s|bits\/s|bps|b\/s|bit)?$/);
}

/** "1.5 TB", "20 GiB", "800M", "1234" -> bytes; null when it cannot be read. */
export function parseVolume(given: string): number | null {
  return parsed(given, /^(?:b|byte|bytes)?$/);
}

function parsed(given: string, unit: RegExp): number | null {
  const compact = given.toLowerCase().replace(/[\s\u202f\u00a0_]/g, "");
  const found = /^(\d+(?:\.\d+)?(?:e\d+)?)([kmgtpe]?)(i?)([a-z/]*)$/.exec(compact);
  if (!found) return null;
  const [, digits = "", prefix = "", binary, rest = ""] = found;
  if (!unit.test(rest)) return null;
  const value = Math.round(Number(digits) * (binary ? 1024 : 1000) ** (prefix ? "kmgtpe".indexOf(prefix) + 1 : 0));
  return Number.isSafeInteger(value) ? value : null;
}
