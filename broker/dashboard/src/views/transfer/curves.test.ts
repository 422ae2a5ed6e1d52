// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { bookedBytes, bookedRate, type Measurement, reportedBytes, reportedRate, reportsOf } from "./curves";

const at = (s: number): string => new Date(s * 1000).toISOString();
const segment = (begin: number, end: number, rate_bps: number) => ({ begin: at(begin), end: at(end), rate_bps, path: ["L1"] });
const report = (s: number, host: string, bytes: number | null, rate_bps: number | null): Measurement => ({
  at: at(s),
  host,
  sequence: s,
  kind: "progress",
  bytes,
  rate_bps,
  applied_rate_bps: null,
});

describe("what was booked", () => {
  test("rates that begin at the same instant add up, and a gap is nothing", () => {
    expect(bookedRate([segment(10, 20, 5), segment(10, 15, 3), segment(30, 40, 2)])).toEqual({
      x: [10, 15, 20, 30, 40],
      values: [8, 5, 0, 2, 0],
    });
  });
  test("nothing booked is no curve", () => {
    expect(bookedRate([])).toEqual({ x: [], values: [] });
    expect(bookedBytes([], 100)).toEqual({ x: [], values: [] });
  });
  test("bytes grow with the rate, and no further than the whole", () => {
    const booked = bookedBytes([segment(0, 10, 80), segment(10, 20, 160)], 250);
    const [x, values] = [Array.from(booked.x), Array.from(booked.values)];
    expect([x[0], x.at(-1)]).toEqual([0, 20]);
    expect(values[x.indexOf(10)]).toBe(100);
    expect(values.at(-1)).toBe(250); // the margin of the booking, 50 bytes, is none of the transfer's
  });
});

describe("what was reported", () => {
  const reports = [report(30, "h1", 300, 30), report(10, "h1", 0, 0), report(20, "h1", null, 20), report(20, "h2", 9, 9)];
  test("of one host, in the order of time", () => {
    expect(reportsOf(reports, "h1").map(({ sequence }) => sequence)).toEqual([10, 20, 30]);
  });
  test("a rate holds from the report before it, and nothing is known behind the last", () => {
    const { x, values } = reportedRate(reportsOf(reports, "h1"), "rate_bps");
    expect([x, values]).toEqual([
      [10, 20, 30],
      [20, 30, Number.NaN],
    ]);
  });
  test("bytes end with the last report, and those without a count are left out", () => {
    const { x, values } = reportedBytes(reportsOf(reports, "h1"));
    expect([x, values]).toEqual([
      [10, 30, 30.001],
      [0, 300, Number.NaN],
    ]);
    expect(reportedBytes([])).toEqual({ x: [], values: [] });
  });
});
