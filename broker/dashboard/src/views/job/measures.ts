// SPDX-License-Identifier: Apache-2.0
// The figures by which planners and plans are compared: which is better, and by how much.
import { duration } from "../../format/time";
import { exact, share, volume } from "../../format/units";
import type { PlanMetrics, PlannerResult } from "./result";

export interface Measure<T> {
  key: string;
  title: string;
  hint: string;
  /** null: it has none, such as a baseline that makes no plans. */
  of: (from: T) => number | null;
  show: (value: number) => string;
  /** Which way is better; undefined: neither. */
  better?: "more" | "less";
}

export const SIMULATED: readonly Measure<PlannerResult>[] = [
  {
    key: "acceptance_ratio",
    title: "Admitted",
    hint: "Share of the requests that got a plan",
    of: (one) => one.acceptance_ratio,
    show: share,
    better: "more",
  },
  {
    key: "volume_share",
    title: "Volume",
    hint: "Share of the bytes that got a plan",
    of: (one) => (one.asked_bytes > 0 ? one.admitted_bytes / one.asked_bytes : null),
    show: share,
    better: "more",
  },
  {
    key: "normalized_delay_s",
    title: "Delay",
    hint: "From not before to the finish, weighted by volume; compare it where about as much is admitted",
    of: (one) => one.normalized_delay_s,
    show: duration,
    better: "less",
  },
  {
    key: "missed",
    title: "Missed",
    hint: "Of the requests with a deadline, those refused or late",
    of: (one) => (one.deadlines.requests > 0 ? one.deadlines.missed / one.deadlines.requests : null),
    show: share,
    better: "less",
  },
  {
    key: "congestion_factor",
    title: "Busiest",
    hint: "The largest share of any link booked at any instant",
    of: (one) => one.congestion_factor,
    show: share,
    better: "less",
  },
  {
    key: "utilisation",
    title: "Used",
    hint: "Of what the used links could carry while requests arrive",
    of: (one) => one.utilisation,
    show: share,
  },
  {
    key: "makespan_s",
    title: "Done after",
    hint: "From the beginning to the last finish",
    of: (one) => one.makespan_s,
    show: duration,
    better: "less",
  },
  {
    key: "mean_rows",
    title: "Rows",
    hint: "Segments of a plan: one more than its changes of rate",
    of: (one) => one.mean_rows,
    show: (value) => exact(Number(value.toFixed(2))),
    better: "less",
  },
  {
    key: "planning_s",
    title: "Planning",
    hint: "Time of the planner for each request, on the broker's machine",
    of: (one) => one.planning.mean_us_per_request / 1e6,
    show: duration,
    better: "less",
  },
];

export const PLANNED: readonly Measure<PlanMetrics>[] = [
  {
    key: "congestion_factor",
    title: "Busiest link",
    hint: "The largest booked share of a link that they use",
    of: (one) => one.congestion_factor,
    show: share,
    better: "less",
  },
  {
    key: "mean_finish_s",
    title: "Mean finish",
    hint: "From the cut on",
    of: (one) => one.mean_finish_s,
    show: duration,
    better: "less",
  },
  { key: "makespan_s", title: "Last finish", hint: "From the cut on", of: (one) => one.makespan_s, show: duration, better: "less" },
  {
    key: "weighted_completion_s",
    title: "Weighted finishes",
    hint: "Their sum, each times its priority's weight",
    of: (one) => one.weighted_completion_s,
    show: duration,
    better: "less",
  },
  {
    key: "change_points",
    title: "Rates to program",
    hint: "How often hosts are told a rate",
    of: (one) => one.change_points,
    show: exact,
    better: "less",
  },
  {
    key: "on_time",
    title: "On time",
    hint: "Transfers that end as promised",
    of: (one) => one.on_time,
    show: exact,
    better: "more",
  },
  {
    key: "volume_on_time_bytes",
    title: "Volume on time",
    hint: "What these carry",
    of: (one) => one.volume_on_time_bytes,
    show: volume,
    better: "more",
  },
];

export interface Difference {
  words: string;
  tone: "good" | "bad" | "plain";
}

/** From `before` to `after`, in the measure's own unit. What looks alike is alike. */
export function difference<T>(
  { show, better }: Pick<Measure<T>, "show" | "better">,
  before: number | null,
  after: number | null,
): Difference | undefined {
  if (before === null || after === null) return undefined;
  const by = after - before;
  if (show(before) === show(after)) return { words: "no change", tone: "plain" };
  const words = `${by > 0 ? "+" : "−"}${show(Math.abs(by))}`;
  if (better === undefined) return { words, tone: "plain" };
  return { words, tone: by > 0 === (better === "more") ? "good" : "bad" };
}
