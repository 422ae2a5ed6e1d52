// SPDX-License-Identifier: Apache-2.0
// Names to suggest for From and To. The topology is asked for when somebody begins to filter, not whenever the list is shown.
import { useCallback, useMemo, useState } from "react";
import { useQuery } from "../../api/use";

interface Topology {
  links: readonly { source: string; target: string }[];
}
const NONE: readonly string[] = [];

export function useNodeNames(): { names: readonly string[]; want: () => void } {
  const [wanted, setWanted] = useState(false);
  const { data } = useQuery<Topology>(wanted ? "/v1/topology" : null);
  const hosts = useQuery<{ items: readonly { name: string }[] }>(wanted ? "/v1/hosts" : null);
  const names = useMemo(() => {
    if (!data) return NONE;
    const ends = data.links.flatMap(({ source, target }) => [source, target]);
    return [...new Set([...ends, ...(hosts.data?.items ?? []).map(({ name }) => name)])].sort();
  }, [data, hosts.data]);
  const want = useCallback(() => setWanted(true), []);
  return { names, want };
}
