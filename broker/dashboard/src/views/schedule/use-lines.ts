// SPDX-License-Identifier: Apache-2.0
// From the broker's answer to the lines that are drawn: rows, filtered, in groups. Each step is memoised.
import { useMemo, useRef } from "react";
import type { Link } from "../../api/types";
import type { Range } from "../../plot/gestures";
import { linkNames } from "./link-names";
import { type Grouping, grouped, type Line, type Row, rowsOf, type Scheduled, within } from "./rows";

interface Wanted {
  link?: string;
  search?: string;
  hide?: readonly string[];
  group?: Grouping;
}

export interface Lines {
  lines: readonly Line[];
  /** How many transfers of each state there are in the range. */
  counts: ReadonlyMap<string, number>;
  /** The largest rate of any of them. */
  peak: number;
}

export function useLines(transfers: readonly Scheduled[], links: readonly Link[], wanted: Wanted, settled: Range): Lines {
  const { link, search = "", hide, group = "none" } = wanted;
  const rows = useMemo(() => rowsOf(transfers, link ? new Set([link]) : undefined), [transfers, link]);
  const seen = useSame(useMemo(() => within(rows, settled[0], settled[1]), [rows, settled[0], settled[1]]));
  const found = useMemo(() => (search ? seen.filter((row) => matches(row, search.toLowerCase())) : seen), [seen, search]);
  const counts = useMemo(() => countsOf(found), [found]);
  const lines = useMemo(() => {
    const names = linkNames(links);
    const shown = hide?.length ? found.filter((row) => !hide.includes(row.state)) : found;
    return grouped(shown, group, (key) => names.get(key) ?? (key || "No project"));
  }, [found, hide, group, links]);
  const peak = useMemo(() => rows.reduce((most, row) => Math.max(most, row.peak), 0), [rows]);
  return { lines, counts, peak };
}

function matches({ name, transfer }: Row, text: string): boolean {
  return [name, transfer.source, transfer.destination, transfer.project ?? ""].some((one) => one.toLowerCase().includes(text));
}

function countsOf(rows: readonly Row[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(row.state, (counts.get(row.state) ?? 0) + 1);
  return counts;
}

/** The array of before while its members are the same: time goes on every second, and mostly nothing comes or goes. */
function useSame<T>(now: T[]): T[] {
  const before = useRef(now);
  if (now.length !== before.current.length || now.some((one, index) => one !== before.current[index])) before.current = now;
  return before.current;
}
