// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { CalendarStep } from "../../api/types";
import { iso } from "../../format/time";
import { freeAlong, peakOf, rateChanges, trcOf } from "./trc";

const segment = (begin: number, end: number, rate_bps: number, path = ["L"]) => ({
  begin: iso(begin),
  end: iso(end),
  rate_bps,
  path,
});

describe("a TRC vector", () => {
  it("rises from nothing and falls to it", () => {
    expect(trcOf([segment(10, 20, 5), segment(20, 30, 7)])).toEqual({
      x: [9.999, 10, 20, 30, 30.001],
      values: [0, 5, 7, 0, Number.NaN],
    });
  });

  it("adds what several paths carry at once", () => {
    const split = [segment(10, 30, 5, ["L1"]), segment(10, 20, 3, ["L2"])];
    expect(trcOf(split).values).toEqual([0, 8, 5, 0, Number.NaN]);
    expect(peakOf(split)).toBe(8);
  });

  it("counts changes of the rate, not rows", () => {
    expect(rateChanges([segment(0, 10, 5)])).toBe(0);
    expect(rateChanges([segment(0, 10, 5), segment(10, 20, 5), segment(20, 30, 6)])).toBe(1);
    expect(rateChanges([segment(0, 10, 5), segment(15, 20, 5)])).toBe(2); // off and on again
    expect(rateChanges([])).toBe(0);
  });
});

describe("what is free along a path", () => {
  const calendar = (...steps: [number, number][]) => ({
    steps: steps.map(([at, free_bps]) => ({ begin: iso(at), free_bps }) as CalendarStep),
  });

  it("is what the tightest link has, at every instant", () => {
    const free = freeAlong([calendar([0, 10], [20, 4]), calendar([0, 8], [10, 6], [30, 9])]);
    expect([...(free.x as Float64Array)]).toEqual([0, 10, 20, 30]);
    expect([...(free.values as Float64Array)]).toEqual([8, 6, 4, 4]);
  });

  it("is never less than nothing", () => expect([...(freeAlong([calendar([0, -3])]).values as Float64Array)]).toEqual([0]));
});
