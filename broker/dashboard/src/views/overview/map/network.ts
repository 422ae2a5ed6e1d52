// SPDX-License-Identifier: Apache-2.0
// The network as the map draws it: hosts are folded into the node that they stand at, and with them their NICs.
import type { Link, Schemas } from "../../../api/types";
import { grouped } from "./grouped";

export type KnownNode = Schemas["Node"];

export interface MapNode {
  id: string;
  name: string;
  place: { latitude: number; longitude: number } | undefined;
  hosts: readonly string[];
}

export interface MapNetwork {
  nodes: readonly MapNode[];
  /** Those between nodes. */
  links: readonly Link[];
  /** Of hosts, by the id of their node. */
  nics: ReadonlyMap<string, readonly Link[]>;
}

export function networkOf(links: readonly Link[], known: readonly KnownNode[]): MapNetwork {
  const between = links.filter((link) => link.host === null);
  const nics = grouped(
    links.filter((link) => link.host !== null),
    (link) => (link.source === link.host ? link.target : link.source),
  );
  const described = new Map(known.map((node) => [node.id, node]));
  // A node that is only known, and which nothing touches, is no part of the network.
  const ids = new Set([...between.flatMap((link) => [link.source, link.target]), ...nics.keys()]);
  const nodes = [...ids].sort().map((id): MapNode => {
    const { name, latitude, longitude } = described.get(id) ?? { name: null, latitude: null, longitude: null };
    const place = latitude === null || longitude === null ? undefined : { latitude, longitude };
    const hosts = [...new Set(nics.get(id)?.map((nic) => nic.host ?? ""))].sort();
    return { id, name: name ?? id, place, hosts };
  });
  return { nodes, links: between, nics };
}

/** Equal for networks that look alike on a map: as long as it is, nothing has to be laid out anew. */
export function shapeOf({ nodes, links }: MapNetwork): string {
  const points = nodes.map(({ id, place }) => [id, place?.latitude, place?.longitude]);
  return JSON.stringify([points, links.map(({ source, target }) => [source, target])]);
}
