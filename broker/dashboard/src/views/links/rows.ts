// SPDX-License-Identifier: Apache-2.0
// Rows of the list of links: what a link is, how full it is, and when less of it may be used next.
import type { Link, Schemas, Window } from "../../api/types";
import { linkName } from "../../format/names";
import { seconds } from "../../format/time";

export type Load = Schemas["NetworkLoad"];

export interface Row {
  link: Link;
  name: string;
  /** Booked of capacity now; null: nothing may be used, undefined: not known yet. */
  now: number | null | undefined;
  /** Of each span of the next hours the largest share booked. */
  ahead: readonly (number | null)[];
  peak: number | null;
  /** The window that holds now, else the next one. */
  window: Window | undefined;
}

export const KINDS = ["network", "nic", "all"] as const;
export type Kind = (typeof KINDS)[number];

/** A link between nodes of the network, or the NIC of a host; with all words of the search in its name, id or host. */
export function matching(links: readonly Link[], kind: Kind, search: string): Link[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return links.filter((link) => {
    if (kind !== "all" && (kind === "nic") !== (link.host !== null)) return false;
    const text = `${link.source} ${link.target} ${link.id} ${link.host ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export function rowsOf(links: readonly Link[], now: Load | undefined, ahead: Load | undefined, time: number): Row[] {
  const [nowOf, aheadOf] = [sharesOf(now), sharesOf(ahead)];
  return links.map((link) => {
    const shares = aheadOf.get(link.id) ?? [];
    const known = shares.filter((share) => share !== null);
    const present = nowOf.get(link.id);
    return {
      link,
      name: linkName(link),
      now: present?.[0],
      ahead: shares,
      peak: known.length > 0 ? Math.max(...known) : null,
      window: nextWindow(link.windows, time),
    };
  });
}

function sharesOf(load: Load | undefined): Map<string, readonly (number | null)[]> {
  return new Map(load?.links.map(({ id, shares }) => [id, shares]));
}

export function nextWindow(windows: readonly Window[], time: number): Window | undefined {
  const open = windows.filter((window) => seconds(window.end) > time);
  return open.sort((a, b) => seconds(a.begin) - seconds(b.begin))[0];
}
