// SPDX-License-Identifier: Apache-2.0
// Which stretch of time is shown, and which is asked for.
import type { Range } from "../../plot/steps";

export const SPANS = ["1h", "6h", "24h", "7d"] as const;
export type Span = (typeof SPANS)[number];

const HOUR = 3_600;
const SECONDS: Record<Span, number> = { "1h": HOUR, "6h": 6 * HOUR, "24h": 24 * HOUR, "7d": 7 * 24 * HOUR };
const BEHIND = 1 / 4;

/** This long after now and a quarter of it before, which shows what became of the plan. Moves in steps too small to be seen. */
export function following(span: Span, now: number): Range {
  const ahead = SECONDS[span];
  const at = Math.floor(now / (ahead / 240)) * (ahead / 240);
  return [at - BEHIND * ahead, at + ahead];
}

/** A range of the URL where it has one. */
export function shownRange({ span, from, to }: { span: Span; from: number | null; to: number | null }, now: number): Range {
  return from !== null && to !== null && from < to ? [from, to] : following(span, now);
}

/**
 * The range to fetch for a visible range: larger on both sides, at most twice as long, and on a grid. Small moves then fetch
 * nothing, and going back finds the earlier answer in the cache.
 */
export function frameOf([from, to]: Range): Range {
  const grid = 2 ** Math.ceil(Math.log2((to - from) / 8));
  return [(Math.floor(from / grid) - 1) * grid, (Math.ceil(to / grid) + 1) * grid];
}

/** Points to ask for in a frame, so that about 2000 lie in what is shown. */
export function pointsOf(frame: Range, shown: Range): number {
  return Math.round((2_000 * (frame[1] - frame[0])) / (shown[1] - shown[0]));
}

const ROUND_S = [1, 10, 60, 300, 900, 3_600] as const;

/** Ends as a hand meant them that drew them: full minutes where a pixel is some seconds. */
export function rounded([from, to]: Range, secondsPerPixel: number): Range {
  const step = [...ROUND_S].reverse().find((one) => one <= 4 * secondsPerPixel) ?? 1;
  const begin = Math.round(from / step) * step;
  return [begin, Math.max(Math.round(to / step) * step, begin + step)];
}
