// SPDX-License-Identifier: Apache-2.0
// Where the axis has its ticks: at round local times, so that days begin at midnight and hours at the hour.
import type { Range } from "../../plot/gestures";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  1,
  2,
  5,
  10,
  15,
  30,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
  28 * DAY,
];

export interface Ticks {
  step: number;
  at: number[];
}

/** At most `most` ticks. `offsetAt`: how many seconds local time is ahead of UTC at an instant. */
export function ticksOf([from, to]: Range, most: number, offsetAt: (time: number) => number = localOffset): Ticks {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? (to - from) / most;
  const at: number[] = [];
  // The offset changes with summer time: it is asked for anew at every tick.
  for (let count = Math.ceil((from + offsetAt(from)) / step); ; count += 1) {
    const local = count * step;
    const time = local - offsetAt(local - offsetAt(local));
    if (time > to) return { step, at };
    if (time >= from) at.push(time);
  }
}

function localOffset(time: number): number {
  return -60 * new Date(time * 1000).getTimezoneOffset();
}
