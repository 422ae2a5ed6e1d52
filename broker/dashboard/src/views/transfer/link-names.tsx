// SPDX-License-Identifier: Apache-2.0
// Links by what they join, leading to their own page; their id on hover.
import { createContext, type ReactNode, useContext, useMemo } from "react";
import { to } from "../../addresses";
import { useQuery } from "../../api/use";
import { linkName } from "../../format/names";
import { Link } from "../../ui";

type Names = ReadonlyMap<string, { source: string; target: string }>;
const NamesOfLinks = createContext<Names>(new Map());

/** One question for all names within. Until it is answered, and for links that are gone, ids stand in. */
export function WithLinkNames({ children }: { children: ReactNode }) {
  const { data } = useQuery<{ links: readonly { id: string; source: string; target: string }[] }>("/v1/topology");
  const names = useMemo<Names>(() => new Map(data?.links.map((link) => [link.id, link])), [data]);
  return <NamesOfLinks value={names}>{children}</NamesOfLinks>;
}

export function LinkName({ id }: { id: string }) {
  const found = useContext(NamesOfLinks).get(id);
  return (
    <Link to={to.link(id)} title={`Link ${id}`}>
      {found ? linkName(found) : nameOfId(id)}
    </Link>
  );
}

/** Links of hosts are not part of the topology; the broker names them by the host and the direction. */
function nameOfId(id: string): string {
  const [, host, direction] = /^(.+)~(up|down)$/.exec(id) ?? [];
  return host ? `${host} ${direction === "up" ? "out" : "in"}` : id;
}
