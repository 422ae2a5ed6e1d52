// SPDX-License-Identifier: Apache-2.0
// Keeps the order of rows while the pointer is over them: contents change in place, a new order waits.

export interface Steady<R> {
  rows: readonly R[];
  /** How many changes of order wait: rows to come, to go or to move. */
  waiting: number;
}

/** `fresh` in the order of `shown`. What comes after the last row that is shown is let in: it moves nothing. */
export function steady<R>(shown: readonly R[], fresh: readonly R[], keyOf: (row: R) => string): Steady<R> {
  const newest = new Map(fresh.map((row) => [keyOf(row), row]));
  const rows = shown.map((row) => newest.get(keyOf(row)) ?? row);
  const known = new Set(shown.map(keyOf));
  let last = fresh.length - 1;
  while (last >= 0 && !known.has(keyOf(fresh[last]!))) last -= 1;
  const behind = fresh.slice(last + 1);
  const inside = fresh.slice(0, last + 1);
  const order = inside.filter((row) => known.has(keyOf(row)));
  const stayed = rows.filter((row) => newest.has(keyOf(row)));
  const moved = order.filter((row, index) => row !== stayed[index]).length;
  const gone = rows.length - stayed.length;
  return { rows: [...rows, ...behind], waiting: inside.length - order.length + moved + gone };
}
