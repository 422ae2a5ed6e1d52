// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { eased, fallen, grainOf, rounded, spanOf } from "./span";

describe("the stretch of time", () => {
  it("has room behind the last instant", () => {
    const [from, to] = spanOf(undefined, [1_000, 2_000]);
    expect(from).toBeLessThanOrEqual(1_000);
    expect(to).toBeGreaterThanOrEqual(2_250);
  });

  it("stays while it serves", () => {
    const now = spanOf(undefined, [1_000, 2_000]);
    expect(spanOf(now, [1_020, 1_800])).toBe(now);
    expect(spanOf(now, [1_000, now[1] + 1])).not.toBe(now);
    expect(spanOf(now, [1_000, 1_050])).not.toBe(now);
  });

  it("is never nothing", () => expect(spanOf(undefined, [1_000])[1]).toBeGreaterThan(1_000));
});

describe("round instants", () => {
  it.each([
    [50, 0.5],
    [100, 1],
    [3_600, 30],
    [86_400, 600],
  ])("within %s s fall to %s s", (length, grain) => expect(grainOf(length)).toBe(grain));

  it.each([20, 90, 700, 5_000, 100_000])("of %s s, one press of an arrow key always reaches the next", (length) => {
    const at = fallen(1_000_000, length);
    expect(fallen(at + length / 100, length)).toBeGreaterThan(at);
    expect(fallen(at - length / 100, length)).toBeLessThan(at);
  });
});

describe("what a person takes of an offer", () => {
  it("is a later deadline, and a round one", () => {
    expect(eased(1_000, 0)).toBe(1_050);
    expect(eased(8.4, 0)).toBeGreaterThan(13);
    expect(eased(8.4, 0)).toBeLessThan(15);
  });

  it("is less volume, in three digits", () => {
    expect(rounded(49_031_695_429_914)).toBe(47_800_000_000_000);
    expect(rounded(1)).toBe(1);
  });
});
