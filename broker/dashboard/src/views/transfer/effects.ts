// SPDX-License-Identifier: Apache-2.0
// What an action would make of a transfer: what is, against what the preview says would be.
import type { Segment, Transfer } from "../../api/types";
import { seconds } from "../../format/time";
import { isLive } from "../transfers/followed";
import { bookedRate } from "./curves";

type Shape = Pick<Transfer, "plan" | "promised_finish" | "paused" | "state">;

export interface Effect {
  /** Nothing is booked from now on: what is left of the plan is past, and its end is no finish. */
  stops: boolean;
  start: Pair<string | null>;
  finish: Pair<string | null>;
  promise: Pair<string | null>;
  peak: Pair<number>;
  /** Links that it leaves, and links that it comes to. */
  left: readonly string[];
  joined: readonly string[];
  /** Seconds by which it would finish later; negative: earlier; null where it has no finish before or after. */
  later: number | null;
}

export interface Pair<T> {
  before: T;
  after: T;
}

export function effect(before: Shape, after: Shape): Effect {
  const stops = after.paused || !isLive(after);
  const finish = stops ? null : after.plan.finish;
  const links = { before: linksOf(before.plan.segments), after: linksOf(after.plan.segments) };
  return {
    stops,
    start: { before: before.plan.start, after: after.plan.start },
    finish: { before: before.plan.finish, after: finish },
    promise: { before: before.promised_finish, after: after.promised_finish },
    peak: { before: peak(before.plan.segments), after: peak(after.plan.segments) },
    left: links.before.filter((link) => !links.after.includes(link)),
    joined: links.after.filter((link) => !links.before.includes(link)),
    later: before.plan.finish && finish && !before.paused ? seconds(finish) - seconds(before.plan.finish) : null,
  };
}

const linksOf = (segments: readonly Segment[]): string[] => [...new Set(segments.flatMap(({ path }) => path))];
const peak = (segments: readonly Segment[]): number => Math.max(0, ...Array.from(bookedRate(segments).values));

/** Bytes that the freed segments would have carried, and until when. */
export function freedBy(freed: readonly Segment[]): { bytes: number; begin: string; end: string } | undefined {
  const [first] = freed;
  if (!first) return undefined;
  const bytes = freed.reduce((sum, { begin, end, rate_bps }) => sum + (rate_bps * (seconds(end) - seconds(begin))) / 8, 0);
  const [begin, end] = [least(freed.map((one) => one.begin)), latest(freed.map((one) => one.end))];
  return { bytes: Math.round(bytes), begin, end };
}

const least = (instants: readonly string[]): string => instants.reduce((a, b) => (seconds(b) < seconds(a) ? b : a));
const latest = (instants: readonly string[]): string => instants.reduce((a, b) => (seconds(b) > seconds(a) ? b : a));
