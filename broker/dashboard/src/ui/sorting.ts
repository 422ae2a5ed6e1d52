// SPDX-License-Identifier: Apache-2.0
// A sort is written as the API writes it: "finish", or "-finish" from the largest down.
import type { Cell } from "./export";

export const sortName = (sort: string): string => sort.replace(/^-/, "");
export const descends = (sort: string): boolean => sort.startsWith("-");

/** What a click on the header makes of the sort. */
export function toggled(sort: string | undefined, name: string): string {
  return sort === name ? `-${name}` : name;
}

const collator = new Intl.Collator(undefined, { numeric: true });

/** Rows in the order of a value; what has none comes last either way, and rows that are equal keep their order. */
export function sorted<R>(rows: readonly R[], value: (row: R) => Cell, down: boolean): R[] {
  const keyed = rows.map((row) => ({ row, key: value(row) }));
  keyed.sort((a, b) => {
    const none = Number(a.key === null || a.key === undefined) - Number(b.key === null || b.key === undefined);
    if (none !== 0) return none;
    return down ? compare(b.key, a.key) : compare(a.key, b.key);
  });
  return keyed.map(({ row }) => row);
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === "string" && typeof b === "string") return collator.compare(a, b);
  return Number(a) - Number(b);
}
