// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { flag, list, maybe, number, oneOf, readState, text, writeState } from "./url-state";

const SHAPE = {
  search: text(),
  state: list(),
  from: maybe(),
  points: number(100),
  done: flag(true),
  by: oneOf(["transfer", "project"], "project"),
};

it("reads what is there, and defaults for what is not or cannot be read", () => {
  expect(readState(SHAPE, "?search=a%20b&state=HELD&state=ACTIVE&from=12.5&points=many&done=0&by=colour")).toEqual({
    search: "a b",
    state: ["HELD", "ACTIVE"],
    from: 12.5,
    points: 100,
    done: false,
    by: "project",
  });
  expect(readState(SHAPE, "")).toEqual({ search: "", state: [], from: null, points: 100, done: true, by: "project" });
});

it("writes what differs from the default, and leaves alone what is not its own", () => {
  expect(writeState(SHAPE, "?tab=x&search=old", { search: "", state: ["HELD"], by: "transfer" })).toBe(
    "?tab=x&state=HELD&by=transfer",
  );
  expect(writeState(SHAPE, "?state=HELD&by=transfer", { state: [], by: "project" })).toBe("");
  expect(writeState(SHAPE, "?from=1", { from: null })).toBe("");
});

it("reads what it writes", () => {
  const state = { search: "<b>&=?", state: ["A", "B"], from: -1.5, points: 7, done: false, by: "transfer" as const };
  expect(readState(SHAPE, writeState(SHAPE, "", state))).toEqual(state);
});
