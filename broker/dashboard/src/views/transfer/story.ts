// SPDX-License-Identifier: Apache-2.0
// Events of a transfer as sentences, and what each has changed.
import type { BrokerEvent } from "../../api/types";
import { actionName } from "../../format/names";
import { local } from "../../format/time";
import { rate, volume } from "../../format/units";

const HAPPENED: Record<string, string> = {
  "transfer.admitted": "Booked",
  "transfer.committed": "Committed: the hold became a reservation",
  "transfer.started": "Began",
  "transfer.finished": "Finished",
  "transfer.failed": "Failed",
  "transfer.canceled": "Canceled",
  "transfer.expired": "Expired",
  "transfer.changed": "Changed",
  "transfer.paused": "Paused",
  "transfer.resumed": "Resumed",
  "transfer.rebooked": "Fell behind; the rest was booked anew",
  "transfer.replanned": "Planned anew",
  "transfer.delayed": "Delayed by the transfer before it",
  "transfer.preempted": "Gave way to a transfer of higher priority",
  "transfer.displacing": "Took the place of transfers of lower priority",
  "transfer.pulled_forward": "Moved forward into capacity that became free",
  "transfer.moved_up": "Moved up: the transfer before it ended early",
  "transfer.handed_over": "Took over from the transfer before it",
  "transfer.released": "Released: the transfer before it has ended",
  "transfer.rechained": "Waits for another transfer now",
  "transfer.unchained": "Waits for no other transfer any more",
  "transfer.signal": "Start signal",
  "transfer.unheard": "Nothing is heard of it; it keeps what is booked",
  "transfer.heard": "Heard of again",
  "transfer.given_back": "What was booked went back: its sender knows that it is canceled",
};

export const happened = ({ action }: Pick<BrokerEvent, "action">): string => HAPPENED[action] ?? actionName(action);

const ACTORS: Record<string, string> = {
  clock: "the broker's clock",
  "hand-over": "the hand-over between transfers",
  "pull-forward": "the broker, moving bookings forward",
};

/** Who did it. Tokens have names; parts of the broker and agents are called by what they are. */
export function actorName({ actor, actor_name }: { actor: string; actor_name?: string | null }): string {
  const agent = /^agent (.*)$/.exec(actor)?.[1];
  return actor_name ?? ACTORS[actor] ?? (agent === undefined ? actor : `the agent on ${agent}`);
}

type Values = Readonly<Record<string, unknown>>;
export interface FieldChange {
  field: string;
  before: string;
  after: string;
}

const NAMES: Record<string, string> = {
  state: "State",
  volume_bytes: "Volume",
  start: "Begins",
  finish: "Finishes",
  plan_revision: "Plan revision",
  best_effort: "Best effort",
  deadline: "Deadline",
  rate_max_bps: "Highest rate",
  priority: "Priority",
  label: "Name",
  project: "Project",
  reason: "Reason",
  bytes_done: "Bytes done",
  checksum: "Checksum",
  hold_until: "Held until",
  after: "Waits for",
  released: "Released",
  duration_s: "Lasts, in seconds",
  paused: "Paused",
};

/** Every field that differs, under the names that this page uses. Before the first event there was nothing. */
export function changes(before: Values | null, after: Values | null): FieldChange[] {
  const fields = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...fields]
    .map((field) => ({
      field: NAMES[field] ?? actionName(field),
      before: shown(field, before?.[field]),
      after: shown(field, after?.[field]),
    }))
    .filter((change) => change.before !== change.after);
}

const INSTANTS = new Set(["start", "finish", "deadline", "hold_until", "released"]);

function shown(field: string, value: unknown): string {
  if (value === undefined || value === null) return "–";
  if (INSTANTS.has(field) && typeof value === "string") return local(value);
  if (field.endsWith("_bps") && typeof value === "number") return rate(value);
  if (/bytes/.test(field) && typeof value === "number") return volume(value);
  if (field === "reason" && typeof value === "object" && "detail" in value) return String(value.detail);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export interface Revision {
  revision: number;
  at: string;
  why: string;
  who: string;
  start: string | null;
  finish: string | null;
}

/** Each plan that it had: the events after which the plan's revision was another. */
export function revisions(events: readonly BrokerEvent[]): Revision[] {
  const found: Revision[] = [];
  for (const event of events) {
    const after = (event.after ?? {}) as Values;
    const revision = after.plan_revision;
    if (typeof revision !== "number" || revision === found.at(-1)?.revision) continue;
    found.push({
      revision,
      at: event.at,
      why: happened(event),
      who: actorName(event),
      start: textOf(after.start),
      finish: textOf(after.finish),
    });
  }
  return found;
}

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);
