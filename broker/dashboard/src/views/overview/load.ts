// SPDX-License-Identifier: Apache-2.0
// How full the links are: exactly now, and the largest share booked in each quarter of an hour of the next day.
import { url } from "../../api/client";
import type { Link, Schemas } from "../../api/types";
import { iso, local, relative, seconds } from "../../format/time";

export type Load = Schemas["NetworkLoad"];

export const SPAN_S = 900;
export const SPANS = 96;

/** Share booked by the id of the link; null: it carries nothing then. */
export type Shares = ReadonlyMap<string, number | null>;

/** The first stop of the slider after now: quarters of an hour by the clock. */
export function firstStop(now: number): number {
  return (Math.floor(now / SPAN_S) + 1) * SPAN_S;
}

/**
 * The start of the current quarter of an hour, which the broker takes for now. It is part of a cache key and must not change often.
 */
export const nowPath = (now: number): string => url("/v1/network/load", { at: iso(firstStop(now) - SPAN_S) });

export function dayPath(now: number): string {
  const begin = firstStop(now);
  return url("/v1/network/load", { from: iso(begin), to: iso(begin + SPANS * SPAN_S), steps: SPANS });
}

export function sharesIn(load: Load | undefined, span: number): Shares {
  return new Map(load?.links.map((link) => [link.id, link.shares[span] ?? null]));
}

/** Stop 0 is now, stop n the n-th quarter of an hour from the first on. What has passed is now. */
export function stopOf(at: number | null, now: number): number {
  if (at === null) return 0;
  return Math.max(0, Math.min(SPANS, Math.floor((at - firstStop(now)) / SPAN_S) + 1));
}

export function instantOf(stop: number, now: number): number | null {
  return stop === 0 ? null : firstStop(now) + (stop - 1) * SPAN_S;
}

export function stopName(stop: number, now: number): string {
  const at = instantOf(stop, now);
  if (at === null) return "Now";
  return `${clock(at, now)} to ${clock(at + SPAN_S, at)}, ${relative(at, now)}`;
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const WEEK_S = 6 * 86_400;

/** "14:15", with the day of the week where it is not today's, with the date where that would not be clear */
export function clock(at: number, now: number): string {
  const whole = local(at, now).replace(/:\d\d$/, "");
  const [date, time] = whole.split(" ");
  if (time === undefined || Math.abs(at - now) > WEEK_S) return whole;
  return `${DAYS[new Date(`${date}T${time}`).getDay()]} ${time}`;
}

/** capacity(t): the last step that has begun, and no more than any window leaves. */
export function capacityAt(link: Pick<Link, "capacity_bps" | "available" | "windows">, at: number): number {
  const step = link.available.findLast((one) => seconds(String(one.from)) <= at);
  const base = step ? Number(step.bps) : link.capacity_bps;
  return Math.min(base, ...link.windows.filter((one) => seconds(one.begin) <= at && at < seconds(one.end)).map((one) => one.bps));
}

export const FULL = 0.95;

/** The first quarter of an hour in which a link that is full now has free capacity; undefined: not within the day. */
export function roomFrom(shares: readonly (number | null)[], begin: number): number | undefined {
  const span = shares.findIndex((share) => share !== null && share < FULL);
  return span < 0 ? undefined : begin + span * SPAN_S;
}
