// SPDX-License-Identifier: Apache-2.0
// A link and a node in words: for the hint at the pointer, and for readers of the screen.
import type { Link } from "../../../api/types";
import { linkName } from "../../../format/names";
import { seconds } from "../../../format/time";
import { share as percent, rate } from "../../../format/units";
import { capacityAt, type Shares } from "../load";
import type { MapNetwork, MapNode } from "./network";

export interface Described {
  title: string;
  lines: readonly string[];
}

/** `at`: an instant; null: now. Of later times the share is the largest in a quarter of an hour. */
export function describedLink(
  link: Link,
  share: number | null | undefined,
  at: number | null,
  now: number,
  alone: boolean,
): Described {
  const instant = at ?? now;
  // Parallel links have the same name: then the id tells which.
  const name = alone ? [] : [link.id];
  if (share === undefined) return { title: linkName(link), lines: name };
  if (share === null) {
    const why = link.windows.find(
      (window) => window.bps === 0 && seconds(window.begin) <= instant && instant < seconds(window.end),
    );
    return {
      title: linkName(link),
      lines: [...name, why ? `closed: ${why.kind}${why.reason ? `, ${why.reason}` : ""}` : "closed"],
    };
  }
  const capacity = capacityAt(link, instant);
  if (share === 0) return { title: linkName(link), lines: [...name, "nothing booked", `of ${rate(capacity)}`] };
  const most = at === null ? "" : "at most ";
  return {
    title: linkName(link),
    lines: [...name, `${most}${percent(share)} booked`, `${rate(share * capacity)} of ${rate(capacity)}`],
  };
}

export function describedNode(node: MapNode, nics: MapNetwork["nics"], shares: Shares, down: ReadonlySet<string>): Described {
  if (node.hosts.length === 0) return { title: node.name, lines: ["no hosts"] };
  const busiest = Math.max(0, ...(nics.get(node.id) ?? []).map((nic) => shares.get(nic.id) ?? 0));
  const silent = node.hosts.filter((host) => down.has(host));
  return {
    title: node.name,
    lines: [
      `${node.hosts.length === 1 ? "host" : `${node.hosts.length} hosts:`} ${few(node.hosts)}`,
      `busiest interface ${percent(busiest)} booked`,
      ...(silent.length > 0 ? [`down: ${few(silent)}`] : []),
    ],
  };
}

const few = (names: readonly string[]): string =>
  names.length > 4 ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more` : names.join(", ");

export const sentence = ({ title, lines }: Described): string => [title, ...lines].join(", ");
