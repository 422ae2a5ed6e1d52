// SPDX-License-Identifier: Apache-2.0
// Three answers of the broker as the data of one plot: capacity as a line, bookings as a stack, measured rates as a line.
import type { Calendar } from "../../api/types";
import { seconds } from "../../format/time";
import { align, type StepFunction } from "../../plot/align";
import type { Range, Series } from "../../plot/steps";
import type { BookingsDocument } from "./bookings";
import type { Stack } from "./layers";

export interface Picture {
  x: Float64Array;
  series: Series[];
}

export const CAPACITY = "capacity";
export const MEASURED = "measured";

/** All functions end at the end of the frame: what lies behind it has not been asked for, and is not nothing. */
export function pictureOf(
  stack: Stack,
  capacity: StepFunction,
  measured: StepFunction,
  frame: Range,
  colours: ReadonlyMap<string, string>,
): Picture {
  const layers = stack.layers.map(({ values }) => ({ x: stack.x, values }));
  const end: StepFunction = { x: [frame[1]], values: [Number.NaN] };
  const { x, values } = align([...layers, capacity, measured, end]);
  const series = stack.layers.map(({ key, label }, index): Series => {
    // By place, not by name: the plot goes on with other transfers in its layers, also in the middle of a drag.
    return { key: `layer-${index}`, label, values: values[index]!, colour: colours.get(key) ?? "muted", stack: true, fill: true };
  });
  series.push({ key: CAPACITY, label: "Capacity", values: values[layers.length]!, colour: "text", width: 2 });
  series.push({ key: MEASURED, label: "Measured", values: values[layers.length + 1]!, colour: "text", width: 2, dash: [2, 3] });
  for (const one of series) one.values.fill(Number.NaN, firstBeyond(x, frame[1]));
  return { x, series };
}

function firstBeyond(x: Float64Array, end: number): number {
  const found = x.findIndex((at) => at >= end);
  return found < 0 ? x.length : found;
}

export function capacityOf({ steps }: Pick<Calendar, "steps">): StepFunction {
  return {
    x: Float64Array.from(steps, ({ begin }) => seconds(begin)),
    values: Float64Array.from(steps, (step) => step.capacity_bps),
  };
}

export function measuredOf({ begin_us, span_us, rates_bps }: BookingsDocument["measured"]): StepFunction {
  const count = rates_bps.length;
  const x = Float64Array.from({ length: count + 1 }, (_, index) => (begin_us + index * span_us) / 1e6);
  const values = Float64Array.from({ length: count + 1 }, (_, index) => rates_bps[index] ?? Number.NaN);
  return { x, values };
}
