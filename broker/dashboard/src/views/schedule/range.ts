// SPDX-License-Identifier: Apache-2.0
// Which stretch of time is shown, and which one is asked for. Pure; use-range.ts keeps it.
import type { Range } from "../../plot/gestures";

export const LEAST_S = 60;
export const MOST_S = 60 * 86_400;
export const USUAL_S = 12 * 3_600;

/** Of a view that goes with the time, this share lies behind now: one looks ahead, and sees what has just been. */
const BEHIND = 1 / 6;

export const following = (now: number, span: number): Range => [now - span * BEHIND, now + span * (1 - BEHIND)];

/** Neither nearer than a minute nor further than two months, around the same middle. */
export function limited([from, to]: Range): Range {
  const span = Math.min(MOST_S, Math.max(LEAST_S, to - from));
  const middle = (from + to) / 2;
  return [middle - span / 2, middle + span / 2];
}

/**
 * What to ask for so that `shown` can be moved and zoomed a little without asking again: a stretch of at least twice its length,
 * which begins and ends on multiples of a power of two, so that neighbours ask the same question.
 */
export function asked([from, to]: Range): Range {
  const unit = 2 ** Math.ceil(Math.log2(Math.max(LEAST_S, to - from)));
  return [(Math.floor(from / unit) - 0.5) * unit, (Math.ceil(to / unit) + 0.5) * unit];
}
