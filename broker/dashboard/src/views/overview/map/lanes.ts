// SPDX-License-Identifier: Apache-2.0
// Links between the same two nodes are drawn as lanes of one road: each direction on its right-hand side, parallel links beside
// each other. Half an arrowhead on the outer side (a harpoon) shows the direction.
import { grouped } from "./grouped";
import type { Point } from "./plane";

export interface Lane {
  /** From the middle of the road to that of the lane, to the right of its direction; in pixels. */
  offset: number;
  width: number;
}

interface Directed {
  id: string;
  source: string;
  target: string;
  capacity_bps: number;
}

const WIDEST = 6;
const NARROWEST = 2;
const GAP = 1.5;

/**
 * Lanes by the id of the link. A decade of capacity less is 2 pixels narrower. No road is wider than `most` pixels: one with many
 * lanes has thin ones. `unit`: a pixel, larger on screens that are far away.
 */
export function lanesOf(links: readonly Directed[], most: number, unit = 1): Map<string, Lane> {
  const largest = Math.max(1, ...links.map((link) => link.capacity_bps));
  const lanes = new Map<string, Lane>();
  for (const ways of grouped(links, roadOf).values()) {
    const sides = [...grouped(ways, (link) => link.source).values()].map((side) => side.toSorted((a, b) => (a.id < b.id ? -1 : 1)));
    const widths = sides.map((side) => side.map((link) => widthOf(link.capacity_bps, largest)));
    const half = Math.max(...widths.map((side) => side.reduce((sum, width) => sum + width + GAP, 0)));
    const scale = unit * Math.min(1, most / 2 / half);
    for (const [which, side] of sides.entries()) {
      let edge = GAP / 2;
      for (const [index, link] of side.entries()) {
        const width = widths[which]?.[index] ?? NARROWEST;
        lanes.set(link.id, { offset: (edge + width / 2) * scale, width: width * scale });
        edge += width + GAP;
      }
    }
  }
  return lanes;
}

const roadOf = ({ source, target }: Directed): string => JSON.stringify(source < target ? [source, target] : [target, source]);

function widthOf(capacity: number, largest: number): number {
  return Math.max(NARROWEST, WIDEST - 2 * Math.log10(largest / Math.max(capacity, 1)));
}

export interface Shape {
  /** Outline of the lane, for the `d` of a path. */
  path: string;
  middle: Point;
}

/** The lane from one node to the other, on the screen; nodes are dots with this radius. */
export function shapeOf(from: Point, to: Point, { offset, width }: Lane, radius: number): Shape {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1e-9;
  const [ux, uy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const cut = Math.min(Math.sqrt(Math.max(0, radius ** 2 - offset ** 2)), length * 0.4);
  // `along` from the first node, `right` of the middle of the road; y grows downwards, so right of (ux, uy) is (-uy, ux).
  const at = (along: number, right: number): Point => ({
    x: from.x + ux * along - uy * right,
    y: from.y + uy * along + ux * right,
  });
  const [inner, outer] = [offset - width / 2, offset + width / 2];
  const [begin, end] = [cut, length - cut];
  const barb = Math.min(1.6 * width + 3, (end - begin) * 0.5);
  const corners = [
    at(begin, inner),
    at(end, inner),
    at(end - barb, outer + width * 0.5 + 1),
    at(end - barb, outer),
    at(begin, outer),
  ];
  const path = `M${corners.map((corner) => `${corner.x.toFixed(1)} ${corner.y.toFixed(1)}`).join("L")}Z`;
  return { path, middle: at((begin + end) / 2, offset) };
}
