// SPDX-License-Identifier: Apache-2.0
// The network at some scale: outlines of links, dots of nodes, and names. Pure. In pixels from the origin of the plane, so that
// nothing is computed anew while the map only shifts.

import { share as percent } from "../../../format/units";
import type { Shares } from "../load";
import { type Label, labelled, type Wanted } from "./labels";
import { lanesOf, type Shape, shapeOf } from "./lanes";
import type { MapNetwork } from "./network";
import type { Box, Point } from "./plane";

export interface Scene {
  shapes: ReadonlyMap<string, Shape>;
  dots: ReadonlyMap<string, Point>;
  radius: number;
}

const MOST_ROAD_PX = 10; // at the sight of the whole network
const LEGIBLE_PX = 14; // what the sizes are made for; a larger text enlarges them alike

export function sceneOf(
  network: MapNetwork,
  points: ReadonlyMap<string, Point>,
  scale: number,
  zoom: number,
  fontPx: number,
): Scene {
  const unit = fontPx / LEGIBLE_PX;
  const radius = 4.5 * unit;
  const lanes = lanesOf(network.links, MOST_ROAD_PX * Math.sqrt(zoom), unit);
  const dots = new Map([...points].map(([id, { x, y }]) => [id, { x: x * scale, y: y * scale }]));
  const shapes = new Map<string, Shape>();
  for (const link of network.links) {
    const [from, to, lane] = [dots.get(link.source), dots.get(link.target), lanes.get(link.id)];
    if (from && to && lane) shapes.set(link.id, shapeOf(from, to, lane, radius + unit));
  }
  return { shapes, dots, radius };
}

const HOT = 0.8;
const MOST_HOT = 24;

/**
 * Labels by importance: nodes with many hosts and links first, then loads of nearly full links. Names thus keep their places over
 * time.
 */
export function namesOf(network: MapNetwork, scene: Scene, shares: Shares, fontPx: number, screen: Box): Label[] {
  const roads = new Map<string, { wanted: Wanted; share: number }>();
  for (const link of network.links) {
    const share = shares.get(link.id);
    const middle = scene.shapes.get(link.id)?.middle;
    if (share === undefined || !middle || (share !== null && share < HOT)) continue;
    const road = [link.source, link.target].sort().join(" ");
    if (share !== null && share <= (roads.get(road)?.share ?? -1)) continue;
    const text = share === null ? "closed" : percent(Math.round(share * 100) / 100);
    roads.set(road, { wanted: { key: `link ${link.id}`, at: middle, text, radius: scene.radius }, share: share ?? 2 });
  }
  const hot = [...roads.values()].sort((a, b) => b.share - a.share).slice(0, MOST_HOT);
  const degrees = new Map<string, number>();
  for (const { source } of network.links) degrees.set(source, (degrees.get(source) ?? 0) + 1);
  const nodes = network.nodes
    .toSorted((a, b) => b.hosts.length - a.hosts.length || (degrees.get(b.id) ?? 0) - (degrees.get(a.id) ?? 0))
    .map(
      (node): Wanted => ({
        key: `node ${node.id}`,
        at: scene.dots.get(node.id) ?? { x: 0, y: 0 },
        text: node.name,
        radius: scene.radius * 1.5,
      }),
    );
  const taken = [...scene.dots.values()].map((dot): Box => boxAround(dot, scene.radius));
  return labelled([...nodes, ...hot.map(({ wanted }) => wanted)], fontPx, screen, taken);
}

const boxAround = ({ x, y }: Point, radius: number): Box => ({
  left: x - radius,
  top: y - radius,
  width: 2 * radius,
  height: 2 * radius,
});
