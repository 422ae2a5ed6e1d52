// SPDX-License-Identifier: Apache-2.0
// Ticks of a plot: local time with 24 hours, and rates with SI prefixes.
import type uPlot from "uplot";
import { rate, volume } from "../format/units";
import type { Colours } from "./colours";

export type Unit = "bps" | "bytes" | "plain";

const FORMATS: Record<Unit, (value: number) => string> = { bps: rate, bytes: volume, plain: String };

const two = (value: number): string => String(value).padStart(2, "0");

/** Labels for ticks `step` seconds apart; the day is named at the first tick and where it changes. */
export function timeLabels(ticks: readonly number[], step: number): string[] {
  let before = "";
  return ticks.map((tick) => {
    const date = new Date(tick * 1000);
    const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
    if (step >= 86_400) return day;
    const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
    const fine = step >= 60 ? clock : `${clock}:${two(date.getSeconds())}`;
    const exact = step >= 1 ? fine : `${fine}.${String(date.getMilliseconds()).padStart(3, "0")}`;
    const label = day === before ? exact : `${exact}\n${day}`;
    before = day;
    return label;
  });
}

export function axes(unit: Unit, colours: () => Colours, rem: number): uPlot.Axis[] {
  const common = {
    stroke: () => colours().muted,
    font: `${Math.round(0.85 * rem)}px ${colours().font}`, // uPlot reads whole pixels only
    grid: { stroke: () => colours().line, width: 1 },
    ticks: { stroke: () => colours().line, width: 1, size: 4 },
  } satisfies uPlot.Axis;
  return [
    { ...common, scale: "x", size: 3.1 * rem, space: 5.5 * rem, values: (_, splits, __, ___, step) => timeLabels(splits, step) },
    { ...common, scale: "y", size: 6 * rem, space: 2.4 * rem, values: (_, splits) => splits.map(FORMATS[unit]) },
  ];
}
