// SPDX-License-Identifier: Apache-2.0
// Why requests were refused, in the words of people: codes of problems, as broker/desk/ground/problems.py has them.

const WORDS: Record<string, string> = {
  infeasible: "Not enough free capacity in time",
  "no-path": "No path between source and destination",
  unsupported: "The planner cannot do what was asked",
  invalid: "Values out of range",
  "unknown-node": "Unknown source or destination",
  "unknown-planner": "Unknown planner",
  conflict: "In conflict with another change",
  exists: "Exists already",
  "breaks-promises": "Would break other promises",
  superseded: "Overtaken by a newer request",
  "clock-uncertain": "A host's clock is too uncertain",
  unavailable: "The broker could not decide",
};

export function reasonWords(code: string): string {
  const plain = code.replaceAll("-", " ");
  return WORDS[code] ?? plain.charAt(0).toUpperCase() + plain.slice(1);
}
