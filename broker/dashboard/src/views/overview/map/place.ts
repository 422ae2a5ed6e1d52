// SPDX-License-Identifier: Apache-2.0
// Where every node stands: by its coordinates where they are known, else laid out; never two upon each other.
import type { MapNetwork } from "./network";
import { boxOf, type Place, type Point, projected } from "./plane";
import { GOLDEN_ANGLE, laidOut } from "./stress";

/** Points of the plane by the id of the node, the longer side of all of them 1. */
export function placed({ nodes, links }: Pick<MapNetwork, "nodes" | "links">): Map<string, Point> {
  const indices = new Map(nodes.map((node, index) => [node.id, index]));
  const edges = links.map((link) => [indices.get(link.source) ?? 0, indices.get(link.target) ?? 0] as const);
  const known = nodes.flatMap(({ place }, index) => (place ? [[index, place] as const] : []));
  const points = known.length < 2 ? unit(levelled(laidOut(nodes.length, edges))) : evened(around(nodes.length, edges, known));
  const apart = spacedOut(points, leastDistance(nodes.length));
  return new Map(nodes.map((node, index) => [node.id, apart[index] ?? { x: 0, y: 0 }]));
}

/** Nodes with coordinates at their place, the others near their neighbours. */
function around(
  nodes: number,
  edges: readonly (readonly [number, number])[],
  known: readonly (readonly [number, Place])[],
): Point[] {
  const fixed: (Point | undefined)[] = Array.from({ length: nodes }, () => undefined);
  for (const [order, point] of projected(known.map(([, place]) => place)).entries()) fixed[known[order]?.[0] ?? 0] = point;
  if (known.length === nodes) return fixed.map((point) => point ?? { x: 0, y: 0 });
  const { width, height } = boxOf(fixed.filter((point) => point !== undefined));
  // A tenth of the map: a neighbour's place is only a rough estimate.
  return laidOut(nodes, edges, fixed, Math.max(width, height) / 10 || 1);
}

/** Turned so that it is wide rather than tall, as screens are. */
export function levelled(points: readonly Point[]): Point[] {
  const count = points.length || 1;
  const [meanX, meanY] = [points.reduce((sum, p) => sum + p.x, 0) / count, points.reduce((sum, p) => sum + p.y, 0) / count];
  let [xx, yy, xy] = [0, 0, 0];
  for (const { x, y } of points) {
    xx += (x - meanX) ** 2;
    yy += (y - meanY) ** 2;
    xy += (x - meanX) * (y - meanY);
  }
  const turn = -Math.atan2(2 * xy, xx - yy) / 2; // of the longer axis of their ellipse
  const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
  return points.map(({ x, y }) => ({ x: (x - meanX) * cos - (y - meanY) * sin, y: (x - meanX) * sin + (y - meanY) * cos }));
}

const BY_ORDER = 0.5;
const [FLATTEST, TALLEST] = [0.4, 1]; // height to width, as screens are

/**
 * The mean of each point's place on the globe and its rank from west to east and north to south: dense regions get more room,
 * oceans less, and the order stays. The longer side becomes 1.
 */
export function evened(points: readonly Point[]): Point[] {
  const { left, top, width, height } = boxOf(points);
  const tall = Math.max(FLATTEST, Math.min(TALLEST, height / (width || 1)));
  const [across, down] = [ranks(points.map((point) => point.x)), ranks(points.map((point) => point.y))];
  const mixed = (value: number, rank: number): number => (1 - BY_ORDER) * value + BY_ORDER * rank;
  return points.map(({ x, y }, index) => ({
    x: mixed((x - left) / (width || 1), across[index] ?? 0),
    y: mixed((y - top) / (height || 1), down[index] ?? 0) * tall,
  }));
}

/** From 0 to 1 by order; equal values have equal ranks. */
function ranks(values: readonly number[]): number[] {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const rank = new Map(sorted.map((value, index) => [value, index / (sorted.length - 1 || 1)]));
  return values.map((value) => rank.get(value) ?? 0);
}

function unit(points: readonly Point[]): Point[] {
  const { left, top, width, height } = boxOf(points);
  const scale = 1 / (Math.max(width, height) || 1);
  return points.map(({ x, y }) => ({ x: (x - left) * scale, y: (y - top) * scale }));
}

/** The least distance of two nodes: those of one town are two dots, and a map of many nodes keeps its shape. */
const leastDistance = (nodes: number): number => Math.min(0.05, 0.25 / Math.sqrt(nodes || 1));

const ROUNDS = 60;
const MOST_PAIRS = 2e7;

/** Pushes points apart that are nearer than `least`, until none is or the number of iterations ends. */
export function spacedOut(points: readonly Point[], least: number): Point[] {
  const now = points.map(({ x, y }) => ({ x, y }));
  const rounds = Math.min(ROUNDS, Math.ceil(MOST_PAIRS / (points.length ** 2 + 1)));
  for (let round = 0; round < rounds; round++) {
    let moved = false;
    for (const [index, a] of now.entries()) {
      for (let other = index + 1; other < now.length; other++) {
        const b = now[other];
        if (b && Math.abs(b.x - a.x) < least && Math.abs(b.y - a.y) < least) moved = parted(a, b, least, other) || moved;
      }
    }
    if (!moved) break;
  }
  return now;
}

interface Movable {
  x: number;
  y: number;
}

function parted(a: Movable, b: Movable, least: number, order: number): boolean {
  const gap = Math.hypot(b.x - a.x, b.y - a.y);
  if (gap >= least * 0.999) return false;
  // At the same point: any direction will do, but always the same one.
  const way = gap > 1e-9 ? Math.atan2(b.y - a.y, b.x - a.x) : order * GOLDEN_ANGLE;
  const [x, y] = [(Math.cos(way) * (least - gap)) / 2, (Math.sin(way) * (least - gap)) / 2];
  a.x -= x;
  a.y -= y;
  b.x += x;
  b.y += y;
  return true;
}
