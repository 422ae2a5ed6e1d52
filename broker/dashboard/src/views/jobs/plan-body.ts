// SPDX-License-Identifier: Apache-2.0
// A re-optimisation: its form in the URL, and the body of POST /v1/plans.
import type { Schemas } from "../../api/types";
import { list, number, oneOf, type StateOf, text } from "../../url-state";

export const PLAN = {
  objective: oneOf(["congestion", "completion", "admitted", "volume"], "congestion"),
  scope: oneOf(["all", "project", "links", "transfers"], "all"),
  project: text(),
  link: list(),
  transfer: list(),
  time_limit_s: number(30),
  review_s: number(300), // longer than the API's default: people read before they apply
};

export type PlanForm = StateOf<typeof PLAN>;

export function planBody({
  objective,
  scope,
  project,
  link,
  transfer,
  time_limit_s,
  review_s,
}: PlanForm): Partial<Schemas["PlanBody"]> {
  return {
    objective,
    time_limit_s,
    review_s,
    ...(scope === "project" && { project }),
    ...(scope === "links" && { links: [...link] }),
    ...(scope === "transfers" && { transfers: [...transfer] }),
  };
}

export function planForm(request: Record<string, unknown>): Partial<PlanForm> {
  const { objective, project, links, transfers, time_limit_s, review_s } = request as Partial<Schemas["PlanBody"]>;
  const scope = transfers ? "transfers" : links ? "links" : project ? "project" : "all";
  return { objective, scope, project: project ?? "", link: links ?? [], transfer: transfers ?? [], time_limit_s, review_s };
}

/** What the chosen scope still lacks. */
export function planLacks({ scope, project, link, transfer }: PlanForm): string | undefined {
  if (scope === "project" && project.trim() === "") return "Name the project.";
  if (scope === "links" && link.length === 0) return "Name at least one link.";
  if (scope === "transfers" && transfer.length === 0) return "Name at least one transfer.";
  return undefined;
}
