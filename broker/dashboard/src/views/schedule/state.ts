// SPDX-License-Identifier: Apache-2.0
// What of the schedule is in its address, and what that asks of the broker.
import { url } from "../../api/client";
import { iso } from "../../format/time";
import type { Range } from "../../plot/gestures";
import { flag, list, maybe, number, oneOf, type StateOf, text } from "../../url-state";
import { asked, USUAL_S } from "./range";
import type { Grouping } from "./rows";

export const GROUPINGS: readonly { value: Grouping; label: string }[] = [
  { value: "none", label: "Nothing" },
  { value: "link", label: "Link" },
  { value: "host", label: "End" },
  { value: "project", label: "Project" },
];

export const STATE = {
  /** Seconds since 1970; without it the picture goes with the time. */
  from: maybe(),
  /** Seconds. */
  span: number(USUAL_S),
  link: text(),
  host: text(),
  search: text(),
  group: oneOf(["none", "link", "host", "project"], "none"),
  /** States that are not shown. */
  hide: list(),
  /** Each row's height by its own largest rate. */
  own: flag(),
  show: oneOf(["chart", "table"], "chart"),
};

export type ScheduleState = StateOf<typeof STATE>;

export const MOST_TRANSFERS = 10_000;

export function question({ link, host }: Pick<ScheduleState, "link" | "host">, range: Range): string {
  const [from, to] = asked(range);
  return url("/v1/schedule", { from: iso(from), to: iso(to), link, host, limit: MOST_TRANSFERS });
}
