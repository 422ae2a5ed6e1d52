// SPDX-License-Identifier: Apache-2.0
// Everything on the map that can be pointed at, by "link ID" and "node ID", in words.
import type { Shares } from "../load";
import { type Described, describedLink, describedNode } from "./describe";
import type { MapNetwork } from "./network";
import type { Point } from "./plane";
import type { Scene } from "./scene";

export type Things = ReadonlyMap<string, Described>;

const KIND = "link ".length;

export function thingsOf(network: MapNetwork, shares: Shares, at: number | null, now: number, down: ReadonlySet<string>): Things {
  const roads = new Map<string, number>();
  const road = (link: { source: string; target: string }): string => `${link.source} ${link.target}`;
  for (const link of network.links) roads.set(road(link), (roads.get(road(link)) ?? 0) + 1);
  return new Map([
    ...network.links.map(
      (link) => [`link ${link.id}`, describedLink(link, shares.get(link.id), at, now, roads.get(road(link)) === 1)] as const,
    ),
    ...network.nodes.map((node) => [`node ${node.id}`, describedNode(node, network.nics, shares, down)] as const),
  ]);
}

/** In pixels from the origin of the plane. */
export function placeOf(key: string, scene: Scene): Point | undefined {
  const id = key.slice(KIND);
  return key.startsWith("link ") ? scene.shapes.get(id)?.middle : scene.dots.get(id);
}

/** The first stop of the Tab key on the map: the link that is booked most. */
export function firstStop(network: MapNetwork, shares: Shares): string | undefined {
  let [first, most] = [network.links[0]?.id, -1];
  for (const { id } of network.links) if ((shares.get(id) ?? 0) > most) [first, most] = [id, shares.get(id) ?? 0];
  return first === undefined ? undefined : `link ${first}`;
}
