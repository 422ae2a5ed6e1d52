// SPDX-License-Identifier: Apache-2.0
// The results of jobs as the API gives them; its contract calls them objects and leaves the rest to docs/simulation.md.

export interface PlannerResult {
  planner: string;
  requests: number;
  admitted: number;
  acceptance_ratio: number;
  asked_bytes: number;
  admitted_bytes: number;
  normalized_delay_s: number | null;
  classes: { rate_max_bps: number | null; requests: number; admitted: number; normalized_delay_s: number | null }[];
  deadlines: { requests: number; met: number; missed: number; late: number };
  congestion_factor: number;
  utilisation: number;
  links: { link: string; mean: number; peak: number }[];
  makespan_s: number;
  mean_rows: number | null;
  refusals: Record<string, number>;
  planning: { mean_us_per_request: number };
}

export interface SimulationResult {
  specification: Record<string, unknown>;
  workload: {
    requests: number;
    bytes: number;
    mean_bytes: number;
    offered_load: number;
    last_arrival_s: number;
    horizon_s: number;
  };
  planners: PlannerResult[];
}

export interface PlanMetrics {
  congestion_factor: number;
  mean_finish_s: number;
  makespan_s: number;
  weighted_completion_s: number;
  change_points: number;
  on_time: number;
  volume_on_time_bytes: number;
}

export interface Shown {
  start: string;
  finish: string;
  paths: string[][];
  peak_bps: number;
}

export interface PlanChange {
  transfer_id: string;
  label: string | null;
  source?: string;
  destination?: string;
  promised: string;
  before: Shown;
  after: Shown;
}

export interface PlanResult {
  objective: string;
  considered: number;
  /** Why others stay as they are: reason -> how many. */
  kept: Record<string, number>;
  before: PlanMetrics;
  after: PlanMetrics;
  changes: PlanChange[];
  changes_total: number;
  cut: string;
  apply_by: string;
  /** The version of each link's ledger that the result holds for. */
  links: Record<string, number>;
  note: string | null;
  applied: boolean;
  applied_at?: string;
}
