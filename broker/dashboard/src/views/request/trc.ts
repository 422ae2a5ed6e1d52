// SPDX-License-Identifier: Apache-2.0
// What is drawn of offers on gamma(t): TRC vectors, and what is free along a path, as step functions.
import type { Calendar, Segment } from "../../api/types";
import { seconds } from "../../format/time";
import { align, type StepFunction } from "../../plot/align";

const INSTANT_S = 0.001; // a step of no visible length: the line goes up from nothing, and down to it

/** The total rate over time. NaN before the start and after the finish, so that offers do not cover each other at 0. */
export function trcOf(segments: readonly Pick<Segment, "begin" | "end" | "rate_bps">[]): StepFunction {
  const changes = new Map<number, number>();
  for (const { begin, end, rate_bps } of segments) {
    changes.set(seconds(begin), (changes.get(seconds(begin)) ?? 0) + rate_bps);
    changes.set(seconds(end), (changes.get(seconds(end)) ?? 0) - rate_bps);
  }
  const instants = [...changes.keys()].sort((a, b) => a - b);
  if (instants.length === 0) return { x: [], values: [] };
  let level = 0;
  const levels = instants.map((instant) => (level += changes.get(instant) ?? 0));
  return { x: [instants[0]! - INSTANT_S, ...instants, instants.at(-1)! + INSTANT_S], values: [0, ...levels, Number.NaN] };
}

/** How often hosts are told another rate on the way: neighbours at one rate on one path are one. */
export function rateChanges(segments: readonly Segment[]): number {
  const { values } = trcOf(segments);
  const levels = [...(values as number[])].slice(1, -2);
  return levels.filter((level, index) => index > 0 && level !== levels[index - 1]).length;
}

export function peakOf(segments: readonly Segment[]): number {
  return Math.max(0, ...(trcOf(segments).values as number[]).filter((value) => !Number.isNaN(value)));
}

/** What is free along the whole of a path: at every instant as much as on its tightest link. */
export function freeAlong(calendars: readonly Pick<Calendar, "steps">[]): StepFunction {
  const links = calendars.map(({ steps }) => ({
    x: steps.map((step) => seconds(step.begin)),
    values: steps.map((step) => step.free_bps),
  }));
  const { x, values } = align(links);
  const least = new Float64Array(x.length);
  for (let i = 0; i < x.length; i += 1) least[i] = Math.max(0, Math.min(...values.map((link) => link[i]!)));
  return { x, values: least };
}
