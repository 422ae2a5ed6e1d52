// SPDX-License-Identifier: Apache-2.0
// What of the list stands in the URL, and what the broker is asked with it. Names and values are those of GET /v1/transfers.
import { url } from "../../api/client";
import { flag, list, oneOf, type StateOf, text } from "../../url-state";

const ORDERS = [
  "created",
  "start",
  "finish",
  "promised_finish",
  "deadline",
  "volume",
  "priority",
  "state",
  "label",
  "project",
  "source",
  "destination",
] as const;
type Order = (typeof ORDERS)[number];
export type Sort = Order | `-${Order}`;
const SORTS: readonly Sort[] = ORDERS.flatMap((order): Sort[] => [order, `-${order}`]);

export const STATE = {
  search: text(),
  state: list(),
  promise: list(),
  project: text(),
  source: text(),
  destination: text(),
  mine: flag(),
  // Set by links of other pages, such as the numbers of the overview; here they can only be taken away.
  node: text(),
  ended_after: text(),
  sort: oneOf<Sort>(SORTS, "-created"),
};
export type ListState = StateOf<typeof STATE>;

export const NO_FILTER: Partial<ListState> = {
  search: "",
  state: [],
  promise: [],
  project: "",
  source: "",
  destination: "",
  mine: false,
  node: "",
  ended_after: "",
};

export function isFiltered(state: ListState): boolean {
  const { sort: _, ...filters } = state;
  return Object.values(filters).some((value) => (typeof value === "object" ? value.length > 0 : Boolean(value)));
}

const PAGE = 200;

/** `me`: the id of the token that is signed in. */
export function question({ mine, ...asked }: ListState, me: string): string {
  return url("/v1/transfers", { ...asked, owner: mine ? me : null, outlook: true, count: true, limit: PAGE });
}
