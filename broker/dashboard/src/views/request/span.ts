// SPDX-License-Identifier: Apache-2.0
// The range of time that the plot shows, and the instants to which a dragged line snaps.
import type { Range } from "../../plot/steps";

const LEAST_S = 10;
const ROOM = 0.25; // behind the last instant, so that a deadline can be drawn out
const TOO_EMPTY = 0.3;

/**
 * A range from the first to the last instant, with a margin. The current range is kept while it still fits: else the plot would
 * jump.
 */
export function spanOf(now: Range | undefined, instants: readonly number[]): Range {
  const first = Math.min(...instants);
  const last = Math.max(...instants, first + LEAST_S);
  if (
    now &&
    now[0] <= first &&
    now[1] >= last &&
    last - now[0] >= TOO_EMPTY * (now[1] - now[0]) &&
    first - now[0] <= TOO_EMPTY * (now[1] - now[0])
  )
    return now;
  const length = (last - first) * (1 + ROOM);
  const grain = grainOf(length);
  return [Math.floor(first / grain) * grain, Math.ceil((first + length) / grain) * grain];
}

const GRAINS = [1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 10_800, 21_600, 86_400];

/** The largest round unit of time of which a hundred are no longer than this. Arrow keys move by a hundredth of what is seen. */
export function grainOf(length: number): number {
  return GRAINS.findLast((grain) => grain <= length / 100) ?? length / 100;
}

/** The nearest round instant: nobody means 12:03:17.291. */
export function fallen(time: number, length: number): number {
  const grain = grainOf(length);
  return Math.round(time / grain) * grain;
}

const EASE = 0.05;
const LEAST_EASE_S = 5;

/**
 * An offered deadline, made a little later and rounded: the offer is exact to the microsecond and holds for some seconds only. A
 * later deadline can be met as well.
 */
export function eased(deadline: number, now: number): number {
  const later = deadline + Math.max(LEAST_EASE_S, EASE * (deadline - now));
  const grain = grainOf(later - now);
  return Math.ceil(later / grain) * grain;
}

/** A volume that is offered to the byte, as a person takes it: a little less, three digits. */
export function rounded(volume: number): number {
  const less = volume * (1 - EASE / 2);
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, less))) - 2);
  return Math.max(1, Math.floor(less / unit) * unit);
}
