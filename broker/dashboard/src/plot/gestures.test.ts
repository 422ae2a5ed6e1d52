// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { timeLabels } from "./axes";
import { keyed, moved, within, zoomed } from "./gestures";

it("zooms around what is under the pointer", () => {
  expect(zoomed([0, 100], 0.5, 25, undefined)).toEqual([12.5, 62.5]);
  expect(zoomed([0, 100], 2, 50, [0, 120])).toEqual([0, 120]);
});

it("stays within bounds and keeps its length", () => {
  expect(moved([10, 20], -50, [0, 100])).toEqual([0, 10]);
  expect(moved([10, 20], 500, [0, 100])).toEqual([90, 100]);
  expect(within([-50, 500], [0, 100])).toEqual([0, 100]);
  expect(moved([10, 20], -50, undefined)).toEqual([-40, -30]);
});

it("knows its keys", () => {
  expect(keyed("ArrowRight", [0, 100], undefined)).toEqual([15, 115]);
  expect(keyed("Home", [0, 10], [0, 100])).toEqual([0, 100]);
  expect(keyed("a", [0, 10], undefined)).toBeUndefined();
});

it("names the day once", () => {
  const midnight = new Date(2026, 0, 2).getTime() / 1000;
  expect(timeLabels([midnight - 3600, midnight, midnight + 3600], 3600)).toEqual([
    "23:00\n2026-01-01",
    "00:00\n2026-01-02",
    "01:00",
  ]);
  expect(timeLabels([midnight], 86_400)).toEqual(["2026-01-02"]);
  expect(timeLabels([midnight + 0.5], 0.5)).toEqual(["00:00:00.500\n2026-01-02"]);
});
