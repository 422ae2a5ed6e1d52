// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { duration, fromInput, iso, local, parseDuration, relative, seconds, toInput, utc } from "./time";

const plain = (shown: string): string => shown.replaceAll("\u202f", " ");

describe("instants", () => {
  it("keeps microseconds", () => {
    expect(seconds("2026-01-01T00:00:00.000001Z")).toBeCloseTo(1_767_225_600.000001, 6);
    expect(utc("2026-01-01T00:00:00.000001Z")).toBe("2026-01-01 00:00:00.000001 UTC");
    expect(utc("2026-01-01T00:00:00.500Z")).toBe("2026-01-01 00:00:00.5 UTC");
  });

  it("takes text, dates and seconds alike", () => {
    for (const one of ["2026-01-31T13:05:09Z", new Date("2026-01-31T13:05:09Z"), 1_769_864_709]) {
      expect(iso(one)).toBe("2026-01-31T13:05:09.000Z");
      expect(utc(one)).toBe("2026-01-31 13:05:09 UTC");
    }
  });

  it("shows local time, today without the day", () => {
    const noon = new Date(2026, 0, 31, 12, 0, 5);
    expect(local(noon)).toBe("2026-01-31 12:00:05");
    expect(local(noon, new Date(2026, 0, 31, 23))).toBe("12:00:05");
    expect(local(noon, new Date(2026, 1, 1))).toBe("2026-01-31 12:00:05");
  });

  it("goes through an input and back", () => {
    const noon = new Date(2026, 0, 31, 12, 0, 5);
    expect(fromInput(toInput(noon))).toBe(noon.toISOString());
    expect(fromInput("")).toBeNull();
    expect(fromInput("2026-13-01T00:00")).toBeNull();
  });

  it.each([
    [5, "in 5 s"],
    [-90, "1 min ago"],
    [7_300, "in 2 h"],
    [-200_000, "2 d ago"],
    [0.4, "now"],
  ])("%s s away is %s", (away, shown) => expect(plain(relative(1000 + away, 1000))).toBe(shown));
});

describe("durations", () => {
  it.each([
    [0, "0 s"],
    [0.000_25, "250 µs"],
    [0.25, "250 ms"],
    [1.5, "1.5 s"],
    [59.7, "1 min"],
    [90, "1 min 30 s"],
    [9_000, "2 h 30 min"],
    [3_605, "1 h"],
    [90_000, "1 d 1 h"],
    [-90, "−1 min 30 s"],
    [null, "–"],
  ])("%s is %s", (lasting, shown) => expect(plain(duration(lasting))).toBe(shown));

  it.each([
    ["2h 30min", 9_000],
    ["90 s", 90],
    ["1.5d", 129_600],
    ["5m", 300],
    ["soon", null],
    ["", null],
    ["5", null],
  ])("%s is %s s", (given, lasting) => expect(parseDuration(given)).toBe(lasting));
});
