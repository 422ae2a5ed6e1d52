// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { BrokerEvent } from "../../api/types";
import { actorName, changes, happened, revisions } from "./story";

const event = (action: string, after: Record<string, unknown>): BrokerEvent => ({
  id: "1",
  at: "2026-01-01T00:00:00Z",
  actor: "clock",
  actor_name: null,
  action,
  subject_kind: "transfer",
  subject: "tr_1",
  subject_name: null,
  before: null,
  after,
});

test("events are sentences, those that this page does not know too", () => {
  expect(happened({ action: "transfer.admitted" })).toBe("Booked");
  expect(happened({ action: "transfer.turned_round" })).toBe("Transfer turned round");
});

test("who acted has a name", () => {
  expect(actorName({ actor: "tok_1", actor_name: "workflow" })).toBe("workflow");
  expect(actorName({ actor: "clock" })).toBe("the broker's clock");
  expect(actorName({ actor: "agent dtn1" })).toBe("the agent on dtn1");
});

describe("what changed", () => {
  test("only what differs, in human units", () => {
    expect(
      changes({ rate_max_bps: 1e9, priority: 1, state: "ACTIVE" }, { rate_max_bps: 2e9, state: "ACTIVE", paused: true }),
    ).toEqual([
      { field: "Highest rate", before: "1\u202fGbit/s", after: "2\u202fGbit/s" },
      { field: "Priority", before: "1", after: "–" },
      { field: "Paused", before: "–", after: "yes" },
    ]);
  });
  test("a reason is its sentence", () => {
    expect(changes(null, { reason: { code: "paused", detail: "paused by somebody" } })).toEqual([
      { field: "Reason", before: "–", after: "paused by somebody" },
    ]);
  });
});

test("a plan is listed once, with the event that made it", () => {
  const events = [
    event("transfer.admitted", { plan_revision: 1, finish: "a" }),
    event("transfer.started", { plan_revision: 1 }),
    event("transfer.rebooked", { plan_revision: 2, finish: "b" }),
  ];
  expect(revisions(events).map(({ revision, why, finish }) => [revision, why, finish])).toEqual([
    [1, "Booked", "a"],
    [2, "Fell behind; the rest was booked anew", "b"],
  ]);
});
