// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { seconds } from "../../format/time";
import { capacityAt, firstStop, instantOf, nowPath, roomFrom, SPAN_S, SPANS, sharesIn, stopOf } from "./load";

const NOW = seconds("2026-01-01T14:07:30Z");

describe("stops of the slider", () => {
  it("are quarters of an hour by the clock, after now", () => {
    expect(firstStop(NOW)).toBe(seconds("2026-01-01T14:15:00Z"));
    expect(instantOf(0, NOW)).toBeNull();
    expect(instantOf(1, NOW)).toBe(seconds("2026-01-01T14:15:00Z"));
    expect(instantOf(SPANS, NOW)).toBe(seconds("2026-01-02T14:00:00Z"));
  });

  it("lead to an instant and back", () => {
    for (const stop of [0, 1, 2, 50, SPANS]) expect(stopOf(instantOf(stop, NOW), NOW)).toBe(stop);
  });

  it("an instant that has passed is now, one beyond the day is its end", () => {
    expect(stopOf(NOW - 1, NOW)).toBe(0);
    expect(stopOf(NOW + 10 * 86_400, NOW)).toBe(SPANS);
  });

  it("the question for now is the same one for a quarter of an hour", () => {
    expect(nowPath(NOW)).toBe(nowPath(NOW + 400));
    expect(nowPath(NOW)).not.toBe(nowPath(NOW + SPAN_S));
  });
});

describe("capacity", () => {
  const link = {
    capacity_bps: 100,
    available: [
      { from: "2026-01-01T14:00:00Z", bps: 80 },
      { from: "2026-01-01T15:00:00Z", bps: 90 },
    ],
    windows: [
      { id: "w1", begin: "2026-01-01T14:30:00Z", end: "2026-01-01T14:40:00Z", bps: 85, kind: "background", reason: null },
      { id: "w2", begin: "2026-01-01T15:30:00Z", end: "2026-01-01T15:40:00Z", bps: 0, kind: "outage", reason: "cut" },
    ],
  };
  it.each([
    ["13:59:59", 100],
    ["14:00:00", 80],
    ["14:35:00", 80],
    ["15:29:59", 90],
    ["15:30:00", 0],
    ["15:40:00", 90],
  ])("at %s is %i", (clock, bps) => expect(capacityAt(link, seconds(`2026-01-01T${clock}Z`))).toBe(bps));
});

it("reads a span of an answer", () => {
  const load = { begin: "", end: "", steps: 2, links: [{ id: "L1", shares: [0.5, null] }] };
  expect([...sharesIn(load, 0)]).toEqual([["L1", 0.5]]);
  expect([...sharesIn(load, 1)]).toEqual([["L1", null]]);
  expect(sharesIn(undefined, 0).size).toBe(0);
});

it("says when a full link has room again", () => {
  expect(roomFrom([1, 0.97, null, 0.4], 0)).toBe(3 * SPAN_S);
  expect(roomFrom([1, null], 0)).toBeUndefined();
});
