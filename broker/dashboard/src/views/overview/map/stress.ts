// SPDX-License-Identifier: Apache-2.0
// A layout for networks without coordinates, by stress majorization (Gansner, Koren and North, 2004): distances on the page
// approximate distances in hops. Deterministic, so that the same network always looks the same.
import type { Point } from "./plane";

/** Its multiples all point in different directions: a deterministic way to tell points apart. */
export const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

const ROUNDS = 120;
const MOST_STEPS = 4e7; // about half a second; larger networks get fewer iterations

/**
 * `edges` name nodes by index. Nodes with a point in `fixed` stay there, and one hop is `hop` long; the others find their place.
 */
export function laidOut(
  nodes: number,
  edges: readonly (readonly [number, number])[],
  fixed: readonly (Point | undefined)[] = [],
  hop = 1,
): Point[] {
  const hops = allHops(nodes, edges);
  const { xs, ys } = begun(nodes, hops, fixed, hop);
  const rounds = Math.max(3, Math.min(ROUNDS, Math.floor(MOST_STEPS / (nodes * nodes + 1))));
  for (let round = 0; round < rounds; round++) {
    for (let node = 0; node < nodes; node++) {
      if (fixed[node] === undefined) settle(node, nodes, hops, xs, ys, hop);
    }
  }
  return Array.from(xs, (x, node) => ({ x, y: ys[node] ?? 0 }));
}

/** Moves one node to the weighted mean of the places at which the others would have it; near nodes weigh more. */
function settle(node: number, nodes: number, hops: Uint8Array, xs: Float64Array, ys: Float64Array, hop: number): void {
  const [x, y] = [xs[node] ?? 0, ys[node] ?? 0];
  let [sumX, sumY, sum] = [0, 0, 0];
  for (let other = 0; other < nodes; other++) {
    if (other === node) continue;
    const wanted = (hops[node * nodes + other] ?? 1) * hop;
    const [dx, dy] = [x - (xs[other] ?? 0), y - (ys[other] ?? 0)];
    const away = Math.hypot(dx, dy) || 1e-9;
    const weight = 1 / (wanted * wanted);
    sumX += weight * ((xs[other] ?? 0) + (dx / away) * wanted);
    sumY += weight * ((ys[other] ?? 0) + (dy / away) * wanted);
    sum += weight;
  }
  if (sum === 0) return;
  xs[node] = sumX / sum;
  ys[node] = sumY / sum;
}

/** Initial coordinates, close enough that no fold remains: from the distances to two pairs of nodes that are far apart. */
function begun(
  nodes: number,
  hops: Uint8Array,
  fixed: readonly (Point | undefined)[],
  hop: number,
): { xs: Float64Array; ys: Float64Array } {
  const away = (from: number, to: number): number => hops[from * nodes + to] ?? 0;
  const all = Array.from({ length: nodes }, (_, node) => node);
  const farthest = (score: (node: number) => number): number =>
    all.reduce((best, node) => (score(node) > score(best) ? node : best), 0);
  const west = farthest((node) => away(0, node));
  const east = farthest((node) => away(west, node));
  // Of the other pair each is about as far from west as from east.
  const balance = (node: number): number => -2 * Math.abs(away(west, node) - away(east, node));
  const north = farthest((node) => balance(node) + away(west, node) + away(east, node));
  const south = farthest((node) => balance(node) + 2 * away(north, node));
  const [xs, ys] = [new Float64Array(nodes), new Float64Array(nodes)];
  for (const node of all) {
    const nudge = node * GOLDEN_ANGLE; // no two nodes begin at one point
    xs[node] = fixed[node]?.x ?? ((away(west, node) - away(east, node)) / 2 + 0.1 * Math.cos(nudge)) * hop;
    ys[node] = fixed[node]?.y ?? ((away(north, node) - away(south, node)) / 2 + 0.1 * Math.sin(nudge)) * hop;
  }
  return { xs, ys };
}

/** Hops between any two nodes; a little more than the longest way where there is none, which keeps islands beside each other. */
export function allHops(nodes: number, edges: readonly (readonly [number, number])[]): Uint8Array {
  const neighbours: number[][] = Array.from({ length: nodes }, () => []);
  for (const [a, b] of edges) {
    neighbours[a]?.push(b);
    neighbours[b]?.push(a);
  }
  const hops = new Uint8Array(nodes * nodes);
  let longest = 1;
  for (let from = 0; from < nodes; from++) longest = Math.max(longest, spread(from, nodes, neighbours, hops));
  const apart = Math.min(255, longest + 1);
  for (let index = 0; index < hops.length; index++) {
    if (hops[index] === 0 && index % (nodes + 1) !== 0) hops[index] = apart;
  }
  return hops;
}

/** Breadth first from one node, into its row of `hops`; answers the farthest. */
function spread(from: number, nodes: number, neighbours: readonly (readonly number[])[], hops: Uint8Array): number {
  const row = from * nodes;
  const queue = [from];
  let farthest = 0;
  for (let head = 0; head < queue.length; head++) {
    const node = queue[head] ?? from;
    farthest = hops[row + node] ?? 0;
    for (const next of neighbours[node] ?? []) {
      if (next === from || hops[row + next] !== 0) continue;
      hops[row + next] = Math.min(254, farthest + 1);
      queue.push(next);
    }
  }
  return farthest;
}
