// SPDX-License-Identifier: Apache-2.0
// What a transfer was booked, and what its hosts reported, as step functions over time.
import type { Segment } from "../../api/types";
import { seconds } from "../../format/time";
import type { StepFunction } from "../../plot/align";

export interface Measurement {
  at: string;
  host: string;
  sequence: number;
  kind: string;
  bytes: number | null;
  rate_bps: number | null;
  applied_rate_bps: number | null;
}

interface Piece {
  begin: number;
  end: number;
  bps: number;
}

const pieces = (segments: readonly Segment[]): Piece[] =>
  segments
    .map(({ begin, end, rate_bps }) => ({ begin: seconds(begin), end: seconds(end), bps: rate_bps }))
    .sort((a, b) => a.begin - b.begin);

/** The TRC vector: what is booked at any time. Several paths at once add up. */
export function bookedRate(segments: readonly Segment[]): StepFunction {
  const changes = new Map<number, number>();
  for (const { begin, end, bps } of pieces(segments)) {
    changes.set(begin, (changes.get(begin) ?? 0) + bps);
    changes.set(end, (changes.get(end) ?? 0) - bps);
  }
  const x = [...changes.keys()].sort((a, b) => a - b);
  let sum = 0;
  return { x, values: x.map((at) => (sum += changes.get(at) ?? 0)) };
}

const SAMPLES = 400;
const SHORT = 0.001;

/** What the booking has carried by any time, at most `whole`. A slope, in steps too fine to see. */
export function bookedBytes(segments: readonly Segment[], whole: number): StepFunction {
  const all = pieces(segments);
  const [begin, end] = [all[0]?.begin ?? 0, Math.max(...all.map((piece) => piece.end), 0)];
  if (all.length === 0) return { x: [], values: [] };
  const x = Array.from({ length: SAMPLES + 1 }, (_, index) => begin + ((end - begin) * index) / SAMPLES);
  return { x, values: x.map((at) => Math.min(whole, carried(all, at))) };
}

function carried(all: readonly Piece[], at: number): number {
  return all.reduce((sum, { begin, end, bps }) => sum + (bps * Math.max(0, Math.min(at, end) - begin)) / 8, 0);
}

/** What one host said, in the order of time. */
export function reportsOf(all: readonly Measurement[], host: string): Measurement[] {
  return all.filter((report) => report.host === host).sort((a, b) => seconds(a.at) - seconds(b.at));
}

/** A report speaks of the time since the one before: its rate holds from there on, and nothing is known behind the last. */
export function reportedRate(reports: readonly Measurement[], of: "rate_bps" | "applied_rate_bps"): StepFunction {
  const x = reports.map(({ at }) => seconds(at));
  return { x, values: reports.map((_, index) => reports[index + 1]?.[of] ?? Number.NaN) };
}

export function reportedBytes(reports: readonly Measurement[]): StepFunction {
  const counted = reports.filter(({ bytes }) => bytes !== null);
  const x = counted.map(({ at }) => seconds(at));
  const last = x.at(-1);
  if (last === undefined) return { x, values: [] };
  // Nothing is known behind the last report: the line ends with it.
  return { x: [...x, last + SHORT], values: [...counted.map(({ bytes }) => bytes ?? Number.NaN), Number.NaN] };
}
