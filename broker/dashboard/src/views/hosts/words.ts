// SPDX-License-Identifier: Apache-2.0
// Offsets of clocks in words.
import type { Host } from "../../api/types";

/** 1500 -> "+1.5 ms", -120 -> "−120 µs", 0 -> "0 µs" */
export function offset(us: number): string {
  return us === 0 ? size(0) : `${us < 0 ? "−" : "+"}${size(Math.abs(us))}`;
}

/** "+1.5 ms ± 300 µs" */
export function clockOf(clock: NonNullable<Host["clock"]>): string {
  return `${offset(clock.offset_us)} ± ${size(clock.error_us)}`;
}

export function size(us: number): string {
  const [value, unit] = us < 1_000 ? [us, "µs"] : us < 1_000_000 ? [us / 1_000, "ms"] : [us / 1_000_000, "s"];
  return `${Number(value.toPrecision(3))}\u202f${unit}`;
}
