// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { barred, possible } from "./permissions";

test("what a state allows", () => {
  expect(possible({ state: "HELD", paused: false })).toEqual(["commit", "deadline", "priority", "rates", "cancel"]);
  expect(possible({ state: "ACTIVE", paused: false })).toEqual(["pause", "deadline", "priority", "rates", "cancel"]);
  expect(possible({ state: "RESERVED", paused: true })).toEqual(["resume", "deadline", "priority", "rates", "cancel"]);
  expect(possible({ state: "FINISHED", paused: false })).toEqual([]);
});

test("one's own with submit, everybody's with operate, and a reason otherwise", () => {
  const transfer = { state: "ACTIVE", owner: "tok_1" } as const;
  expect(barred(transfer, { id: "tok_1", submits: true, operates: false })).toBeUndefined();
  expect(barred(transfer, { id: "tok_2", submits: true, operates: true })).toBeUndefined();
  expect(barred(transfer, { id: "tok_2", submits: true, operates: false })).toContain("another token");
  expect(barred(transfer, { id: "tok_1", submits: false, operates: false })).toContain("look, not change");
  expect(barred({ ...transfer, state: "CANCELED" }, { id: "tok_1", submits: true, operates: true })).toContain("over");
});
