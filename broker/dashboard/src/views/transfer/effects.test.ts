// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { effect, freedBy } from "./effects";

const at = (s: number): string => new Date(s * 1000).toISOString();
const segment = (begin: number, end: number, rate_bps: number, path = ["L1"]) => ({
  begin: at(begin),
  end: at(end),
  rate_bps,
  path,
});
const shape = (begin: number, end: number, path: string[], more: object = {}) => ({
  plan: {
    planner: "vbls",
    start: at(begin),
    finish: at(end),
    segments: [segment(begin, end, 80, path)],
    paths: [path],
    metrics: {},
  },
  promised_finish: at(end),
  paused: false,
  state: "ACTIVE" as const,
  ...more,
});

test("later, and another way", () => {
  const found = effect(shape(0, 10, ["L1", "L2"]), shape(0, 25, ["L1", "L3"]));
  expect(found).toMatchObject({ stops: false, later: 15, left: ["L2"], joined: ["L3"], finish: { before: at(10), after: at(25) } });
});

test("what is paused or canceled has no finish, whatever is left of its plan", () => {
  expect(effect(shape(0, 10, ["L1"]), shape(0, 5, ["L1"], { paused: true }))).toMatchObject({
    stops: true,
    later: null,
    finish: { after: null },
  });
  expect(effect(shape(0, 10, ["L1"]), shape(0, 5, ["L1"], { state: "CANCELED" }))).toMatchObject({ stops: true, later: null });
});

test("what goes back", () => {
  expect(freedBy([segment(10, 20, 80), segment(5, 10, 160)])).toEqual({ bytes: 200, begin: at(5), end: at(20) });
  expect(freedBy([])).toBeUndefined();
});
