// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { lanesOf, shapeOf } from "./lanes";

const link = (id: string, source: string, target: string, capacity_bps = 1e11) => ({ id, source, target, capacity_bps });
const numbers = (path: string): number[] => path.match(/-?\d+(\.\d+)?/g)?.map(Number) ?? [];

describe("lanesOf", () => {
  it("keeps both directions and all parallels of a road apart", () => {
    const links = [link("1", "A", "B"), link("2", "A", "B"), link("3", "A", "B", 1e10), link("4", "B", "A")];
    const lanes = lanesOf(links, 100);
    const there = ["1", "2", "3"].map((id) => lanes.get(id) ?? { offset: 0, width: 0 });
    for (const [index, lane] of there.entries()) {
      const before = there[index - 1];
      expect(lane.offset - lane.width / 2).toBeGreaterThan(before ? before.offset + before.width / 2 : 0);
    }
    expect(lanes.get("4")?.offset).toBe(there[0]?.offset); // on its own right hand side
  });

  it("draws less capacity narrower, but never too narrow", () => {
    const lanes = lanesOf([link("1", "A", "B", 1e11), link("2", "A", "C", 1e10), link("3", "A", "D", 1)], 100);
    expect(["1", "2", "3"].map((id) => lanes.get(id)?.width)).toEqual([6, 4, 2]);
  });

  it("no road is wider than it may be", () => {
    const links = Array.from({ length: 20 }, (_, index) => link(String(index).padStart(2, "0"), "A", "B"));
    const last = lanesOf(links, 10).get("19") ?? { offset: 0, width: 0 };
    expect(last.offset + last.width / 2).toBeLessThanOrEqual(5);
  });
});

describe("shapeOf", () => {
  it("drives on the right: eastwards below the middle, westwards above it", () => {
    const [a, b] = [
      { x: 0, y: 0 },
      { x: 100, y: 0 },
    ];
    const lane = { offset: 3, width: 2 };
    expect(shapeOf(a, b, lane, 5).middle).toEqual({ x: 50, y: 3 });
    expect(shapeOf(b, a, lane, 5).middle).toEqual({ x: 50, y: -3 });
  });

  it("begins and ends at the dots", () => {
    const xs = numbers(shapeOf({ x: 0, y: 0 }, { x: 100, y: 0 }, { offset: 3, width: 2 }, 5).path).filter(
      (_, index) => index % 2 === 0,
    );
    expect([Math.min(...xs), Math.max(...xs)]).toEqual([4, 96]);
  });

  it("has numbers even where two nodes are one point", () => {
    expect(numbers(shapeOf({ x: 1, y: 1 }, { x: 1, y: 1 }, { offset: 1, width: 1 }, 5).path)).toHaveLength(10);
  });
});
