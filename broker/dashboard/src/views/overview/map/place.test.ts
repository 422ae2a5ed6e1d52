// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Link } from "../../../api/types";
import { type KnownNode, networkOf, shapeOf } from "./network";
import { evened, levelled, placed, spacedOut } from "./place";
import { boxOf } from "./plane";

const link = (id: string, source: string, target: string, host: string | null = null): Link => ({
  ...{ id, source, target, host, capacity_bps: 1e9, mtu_bytes: null, channel_bps: null, slot_us: 1, metric: null },
  ...{ available: [], windows: [], reverse: null, version: 0, revision: 0 },
});
const node = (
  id: string,
  latitude: number | null = null,
  longitude: number | null = null,
  name: string | null = null,
): KnownNode => ({ id, name, latitude, longitude });

describe("networkOf", () => {
  const links = [
    link("L", "A", "B"),
    link("h1~up", "h1", "A", "h1"),
    link("h1~down", "A", "h1", "h1"),
    link("h2~up", "h2", "C", "h2"),
  ];
  const network = networkOf(links, [node("A", 46, 6, "Geneva"), node("Z", 1, 1)]);

  it("folds hosts into their node, and leaves out what nothing touches", () => {
    expect(network.nodes).toEqual([
      { id: "A", name: "Geneva", place: { latitude: 46, longitude: 6 }, hosts: ["h1"] },
      { id: "B", name: "B", place: undefined, hosts: [] },
      { id: "C", name: "C", place: undefined, hosts: ["h2"] },
    ]);
    expect(network.links.map(({ id }) => id)).toEqual(["L"]);
    expect(network.nics.get("A")?.map(({ id }) => id)).toEqual(["h1~up", "h1~down"]);
  });

  it("has another shape with another link or place, and the same with another capacity", () => {
    const shape = shapeOf(network);
    expect(
      shapeOf(
        networkOf(
          links.map((one) => ({ ...one, capacity_bps: 5 })),
          [node("A", 46, 6)],
        ),
      ),
    ).toBe(shape);
    expect(shapeOf(networkOf(links, []))).not.toBe(shape);
    expect(shapeOf(networkOf([...links, link("M", "B", "C")], [node("A", 46, 6)]))).not.toBe(shape);
  });
});

describe("placed", () => {
  it("by coordinates where all have them: nothing changes sides", () => {
    const known = [node("A", 47, -122), node("B", 30, -95), node("C", 46, 6)];
    const at = placed(networkOf([link("1", "A", "B"), link("2", "B", "C")], known));
    const [a, b, c] = ["A", "B", "C"].map((id) => at.get(id) ?? { x: 0, y: 0 });
    expect(a && b && c && a.x < b.x && b.x < c.x && a.y < c.y && c.y < b.y).toBe(true);
  });

  it("a node without coordinates comes near its neighbour", () => {
    const known = [node("A", 47, -122), node("B", 30, -95), node("C", 46, 6)];
    const at = placed(networkOf([link("1", "A", "B"), link("2", "B", "C"), link("3", "C", "D")], known));
    const away = (id: string): number =>
      Math.hypot((at.get("D")?.x ?? 0) - (at.get(id)?.x ?? 0), (at.get("D")?.y ?? 0) - (at.get(id)?.y ?? 0));
    expect(away("C")).toBeLessThan(Math.min(away("A"), away("B")));
  });

  it("is laid out where nothing is known, wide rather than tall", () => {
    const names = ["A", "B", "C", "D", "E", "F"];
    const at = placed(
      networkOf(
        names.slice(1).map((name, index) => link(name, names[index] ?? "", name)),
        [],
      ),
    );
    const box = boxOf([...at.values()]);
    expect(box.width).toBeCloseTo(1);
    expect(box.height).toBeLessThan(0.2);
  });

  it("keeps towns of many nodes apart", () => {
    const names = Array.from({ length: 12 }, (_, index) => `n${index}`);
    const at = [
      ...placed(
        networkOf(
          names.map((name) => link(name, name, "far")),
          [...names.map((name) => node(name, 46, 6)), node("far", 50, 9)],
        ),
      ).values(),
    ];
    for (const [index, a] of at.entries())
      for (const b of at.slice(index + 1)) expect(Math.hypot(a.x - b.x, a.y - b.y)).toBeGreaterThan(0.03);
  });
});

describe("evened", () => {
  it("gives an ocean less and a town more", () => {
    const [west, town, coast, across] = evened([0, 1, 2, 100].map((x) => ({ x, y: x })));
    expect((across?.x ?? 0) - (coast?.x ?? 0)).toBeLessThan(0.7);
    expect((town?.x ?? 0) - (west?.x ?? 0)).toBeGreaterThan(0.1);
  });
});

describe("levelled", () => {
  it("turns a diagonal flat", () => {
    const box = boxOf(levelled([0, 1, 2, 3].map((at) => ({ x: at, y: at }))));
    expect(box.width).toBeCloseTo(3 * Math.SQRT2);
    expect(box.height).toBeCloseTo(0);
  });
});

describe("spacedOut", () => {
  it("parts points upon each other, always alike, and leaves the others", () => {
    const points = [
      { x: 0, y: 0 },
      { x: 0, y: 0 },
      { x: 1, y: 1 },
    ];
    const [a, b, c] = spacedOut(points, 0.1);
    expect(Math.hypot((a?.x ?? 0) - (b?.x ?? 0), (a?.y ?? 0) - (b?.y ?? 0))).toBeCloseTo(0.1);
    expect(c).toEqual({ x: 1, y: 1 });
    expect(spacedOut(points, 0.1)).toEqual([a, b, c]);
  });
});
