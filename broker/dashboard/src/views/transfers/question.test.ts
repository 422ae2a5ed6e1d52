// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { readState, writeState } from "../../url-state";
import { isFiltered, NO_FILTER, question, STATE } from "./question";

test("what stands in the URL is what the broker is asked", () => {
  const state = readState(
    STATE,
    "?search=a%26b&state=HELD&state=ACTIVE&promise=at_risk&mine=1&sort=-volume&ended_after=2026-01-01T00:00:00Z",
  );
  const asked = new URL(question(state, "tok_1"), "http://broker").searchParams;
  expect(Object.fromEntries(asked)).toMatchObject({
    search: "a&b",
    promise: "at_risk",
    owner: "tok_1",
    sort: "-volume",
    outlook: "true",
    ended_after: "2026-01-01T00:00:00Z",
  });
  expect(asked.getAll("state")).toEqual(["HELD", "ACTIVE"]);
  expect(asked.has("mine")).toBe(false);
});

test("an order that the broker does not know is the usual one", () => {
  expect(readState(STATE, "?sort=owner").sort).toBe("-created");
});

test("clearing takes every filter away, and leaves the order", () => {
  const search = "?state=HELD&project=cms&node=A&ended_after=x&mine=1&sort=volume";
  expect(isFiltered(readState(STATE, search))).toBe(true);
  const cleared = writeState(STATE, search, NO_FILTER);
  expect(cleared).toBe("?sort=volume");
  expect(isFiltered(readState(STATE, cleared))).toBe(false);
});
