// SPDX-License-Identifier: Apache-2.0
// How planners are called and coloured. Which there are, and what each does, the broker says: GET /v1/planners. One that is not
// listed here is shown by its name.

const TITLES = new Map([
  ["vbls", "VBLS"],
  ["fbls", "FBLS"],
  ["spaghetti", "Spaghetti"],
  ["vifi", "ViFi"],
  ["alap", "ALAP"],
  ["optimal", "Optimal"],
  ["ifs", "IFS"],
  ["optimal:admitted", "Optimal, most admitted"],
  ["optimal:volume", "Optimal, most volume"],
  ["optimal:completion", "Optimal, earliest"],
  ["ps", "PS"],
]);

/** The planners that the request form offers, in the order of their colours. */
const COLOURED = [...TITLES.keys()].slice(0, 7);

export function plannerTitle(name: string): string {
  return TITLES.get(name) ?? name;
}

/** A colour of its own for each planner, the same in every plot. */
export function plannerColour(name: string): string {
  const place = COLOURED.indexOf(name);
  return `series-${place < 0 ? 8 : place}`;
}
