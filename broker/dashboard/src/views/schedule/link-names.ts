// SPDX-License-Identifier: Apache-2.0
import type { Link } from "../../api/types";
import { linkName } from "../../format/names";

/** id -> what people call it. Of several links between the same nodes, the id tells which is meant. */
export function linkNames(links: readonly Pick<Link, "id" | "source" | "target">[]): Map<string, string> {
  const number = new Map<string, number>();
  for (const link of links) number.set(linkName(link), (number.get(linkName(link)) ?? 0) + 1);
  return new Map(
    links.map((link) => [link.id, (number.get(linkName(link)) ?? 0) > 1 ? `${linkName(link)} (${link.id})` : linkName(link)]),
  );
}
