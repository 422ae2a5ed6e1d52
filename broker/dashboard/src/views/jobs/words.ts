// SPDX-License-Identifier: Apache-2.0
// What people call jobs: there are names for kinds and objectives, and a job is known by what it was asked to do.

import type { Job, Schemas } from "../../api/types";
import { plannerTitle } from "../../format/planners";
import { share } from "../../format/units";

export type Objective = Schemas["PlanBody"]["objective"];

export const OBJECTIVES: readonly { value: Objective; label: string; means: string }[] = [
  { value: "congestion", label: "Least congestion", means: "the largest booked share of any link becomes as small as possible" },
  {
    value: "completion",
    label: "Earliest finishes",
    means: "the sum of all finishes, weighted by priority, becomes as small as possible",
  },
  { value: "admitted", label: "Most on time", means: "as many transfers as possible on time again, where promises were broken" },
  { value: "volume", label: "Most volume on time", means: "as many bytes as possible on time again, where promises were broken" },
];

export const kindName = (kind: Job["kind"]): string => (kind === "plan" ? "Re-optimisation" : "Simulation");

/** Where the API has jobs of this kind. */
export const apiOf = (kind: string): string => (kind === "plan" ? "/v1/plans" : "/v1/simulations");

export const unfinished = (job: Pick<Job, "state">): boolean => job.state === "QUEUED" || job.state === "RUNNING";

/** "vbls, fbls · 1000 requests · load 70 %", "Least congestion · project atlas" */
export function jobName({ kind, request }: Pick<Job, "kind" | "request">): string {
  return (kind === "plan" ? planParts(request) : simulationParts(request)).filter(Boolean).join(" · ");
}

function planParts(request: Job["request"]): string[] {
  const { objective, project, links, transfers } = request as Partial<Schemas["PlanBody"]>;
  return [
    OBJECTIVES.find((one) => one.value === objective)?.label ?? String(objective),
    project ? `project ${project}` : "",
    links ? counted(links.length, "link") : "",
    transfers ? counted(transfers.length, "transfer") : "",
    project || links || transfers ? "" : "all that may move",
  ];
}

function simulationParts(request: Job["request"]): string[] {
  const { planners, requests, load, arrivals_per_s: arrivals, trace, network } = request as Record<string, unknown>;
  return [
    (Array.isArray(planners) ? planners : ["vbls"]).map((name) => plannerTitle(String(name))).join(", "),
    `${String(requests ?? (Array.isArray(trace) ? trace.length : 1000))} requests`,
    typeof load === "number" ? `load ${share(load)}` : typeof arrivals === "number" ? `${arrivals} arrivals a second` : "a trace",
    network === "current" || network === undefined ? "" : "another network",
  ];
}

export function counted(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
