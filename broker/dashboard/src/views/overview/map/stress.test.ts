// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Point } from "./plane";
import { allHops, laidOut } from "./stress";

type Edge = readonly [number, number];

const away = (points: readonly Point[], a: number, b: number): number =>
  Math.hypot((points[a]?.x ?? 0) - (points[b]?.x ?? 0), (points[a]?.y ?? 0) - (points[b]?.y ?? 0));

/** 0 is perfect: how far distances on the page are from those in hops, each weighted by its square. */
function stress(points: readonly Point[], hops: Uint8Array): number {
  const number = points.length;
  let sum = 0;
  for (let a = 0; a < number; a++)
    for (let b = a + 1; b < number; b++) sum += (away(points, a, b) / (hops[a * number + b] ?? 1) - 1) ** 2;
  return sum / ((number * (number - 1)) / 2);
}

const path = (nodes: number): Edge[] => Array.from({ length: nodes - 1 }, (_, node) => [node, node + 1]);
const ring = (nodes: number): Edge[] => Array.from({ length: nodes }, (_, node) => [node, (node + 1) % nodes]);
const grid = (side: number): Edge[] =>
  Array.from({ length: side * side }, (_, node) => node).flatMap((node): Edge[] => [
    ...((node + 1) % side ? [[node, node + 1] as const] : []),
    ...(node + side < side * side ? [[node, node + side] as const] : []),
  ]);

describe("allHops", () => {
  it("counts them both ways, whatever way a link leads", () => {
    expect([
      ...allHops(3, [
        [0, 1],
        [2, 1],
      ]),
    ]).toEqual([0, 1, 2, 1, 0, 1, 2, 1, 0]);
  });
  it("keeps islands a little apart", () => {
    expect([...allHops(3, [[0, 1]])]).toEqual([0, 1, 2, 1, 0, 2, 2, 2, 0]);
  });
});

describe("laidOut", () => {
  it("draws a path as a line", () => {
    const points = laidOut(10, path(10));
    expect(away(points, 0, 9)).toBeCloseTo(9, 1);
    expect(away(points, 4, 5)).toBeCloseTo(1, 1);
  });

  it.each([
    ["a ring of 12", 12, ring(12), 0.05],
    ["a grid of 7 by 7", 49, grid(7), 0.06],
  ] as const)("does not fold %s", (_, nodes, edges, most) =>
    expect(stress(laidOut(nodes, edges), allHops(nodes, edges))).toBeLessThan(most),
  );

  it("is the same every time", () => {
    expect(laidOut(49, grid(7))).toEqual(laidOut(49, grid(7)));
  });

  it("leaves the fixed ones, and puts the others near their neighbours", () => {
    const fixed = [{ x: 0, y: 0 }, { x: 10, y: 0 }, undefined];
    const points = laidOut(
      3,
      [
        [0, 1],
        [1, 2],
      ],
      fixed,
      1,
    );
    expect(points.slice(0, 2)).toEqual(fixed.slice(0, 2));
    expect(away(points, 1, 2)).toBeLessThan(away(points, 0, 2));
  });

  it.each([0, 1, 2])("takes %i nodes without links", (nodes) => {
    const points = laidOut(nodes, []);
    expect(points).toHaveLength(nodes);
    for (const { x, y } of points) expect(Number.isFinite(x) && Number.isFinite(y)).toBe(true);
  });
});
