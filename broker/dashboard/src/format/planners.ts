// SPDX-License-Identifier: Apache-2.0
// Words for the planners. The names are the registry's (broker/planners); what it says of an unknown one is still shown by its name.

export interface PlannerWords {
  name: string;
  title: string;
  /** What it does, in half a sentence. */
  does: string;
}

export const PLANNERS: readonly PlannerWords[] = [
  { name: "vbls", title: "VBLS", does: "begins at once, takes whatever is free, ends as early as it can" },
  { name: "fbls", title: "FBLS", does: "one rate from begin to end, as early as that fits" },
  { name: "spaghetti", title: "Spaghetti", does: "the lowest even rate that still meets the deadline" },
  { name: "vifi", title: "ViFi", does: "full rate, one after the other" },
  { name: "alap", title: "ALAP", does: "as late as possible, so that the present stays free" },
  { name: "optimal", title: "Optimal", does: "least congestion, by a solver; slower to answer" },
  { name: "ifs", title: "IFS", does: "a prediction: what fair sharing would give; books nothing" },
];

/** Only simulations know these. */
export const SIMULATED: readonly PlannerWords[] = [
  ...PLANNERS,
  { name: "optimal:admitted", title: "Optimal, most admitted", does: "as many requests as possible, by a solver" },
  { name: "optimal:volume", title: "Optimal, most volume", does: "as many bytes as possible, by a solver" },
  { name: "optimal:completion", title: "Optimal, earliest", does: "the least sum of finishes, by a solver" },
  { name: "ps", title: "PS", does: "a baseline: packets in queues, nothing planned" },
];

export function plannerTitle(name: string): string {
  return SIMULATED.find((planner) => planner.name === name)?.title ?? name;
}

/** A colour of its own for each planner, the same in every plot. */
export function plannerColour(name: string): string {
  const place = PLANNERS.findIndex((planner) => planner.name === name);
  return `series-${place < 0 ? 7 : place}`;
}
