// SPDX-License-Identifier: Apache-2.0
// The network as the form needs it: the places that a transfer can start and end at, hosts, and names of paths.
import { useMemo } from "react";
import type { Host, Link, Schemas } from "../../api/types";
import { useQuery } from "../../api/use";

export interface Place {
  name: string;
  what: string;
}

export interface Network {
  places: readonly Place[];
  hosts: ReadonlyMap<string, Host>;
  links: ReadonlyMap<string, Pick<Link, "source" | "target">>;
  known: boolean;
}

export function useNetwork(): Network {
  const topology = useQuery<Schemas["Topology"]>("/v1/topology");
  const links = useQuery<Link[]>("/v1/links"); // those of hosts' NICs too, which the topology leaves out
  const hosts = useQuery<Host[]>("/v1/hosts");
  return useMemo(
    () => networkOf(links.data, topology.data?.nodes ?? [], hosts.data ?? []),
    [links.data, topology.data, hosts.data],
  );
}

function networkOf(links: readonly Link[] | undefined, nodes: readonly Schemas["Node"][], hosts: readonly Host[]): Network {
  const cities = new Map(nodes.map((node) => [node.id, node.name]));
  const byName = new Map(hosts.map((host) => [host.name, host]));
  const names = new Set((links ?? []).flatMap((link) => [link.source, link.target]).filter((name) => !byName.has(name)));
  const places = [
    ...hosts.map(({ name, node, up, drained }) => ({
      name,
      what: `host at ${node}${drained ? ", drained" : up ? "" : ", not up"}`,
    })),
    ...[...names].map((name) => ({ name, what: cities.get(name) ?? "node" })),
  ];
  places.sort((a, b) => a.name.localeCompare(b.name));
  return {
    places,
    hosts: byName,
    links: new Map((links ?? []).map((link) => [link.id, link])),
    known: links !== undefined,
  };
}

/** ["a--b", "b--c"] -> "a → b → c": links are named by what they join. */
export function pathName(path: readonly string[], links: Network["links"]): string {
  const first = links.get(path[0] ?? "");
  if (!first || path.some((id) => !links.has(id))) return path.join(" → ");
  return [first.source, ...path.map((id) => links.get(id)!.target)].join(" → ");
}
