// SPDX-License-Identifier: Apache-2.0
// A table as a file: what its columns hold, not what they look like.

export type Cell = string | number | boolean | null | undefined;

export interface Exported<R> {
  key: string;
  title: string;
  value: (row: R) => Cell;
}

/** RFC 4180. A text that a spreadsheet would run as a formula gets a ' in front: labels are written by anybody. */
export function toCsv<R>(columns: readonly Exported<R>[], rows: readonly R[]): string {
  const lines = rows.map((row) => columns.map((column) => quoted(column.value(row))).join(","));
  return [columns.map((column) => quoted(column.key)).join(","), ...lines, ""].join("\r\n");
}

function quoted(cell: Cell): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell !== "string") return String(cell);
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function toJson<R>(columns: readonly Exported<R>[], rows: readonly R[]): string {
  const objects = rows.map((row) => Object.fromEntries(columns.map((column) => [column.key, column.value(row) ?? null])));
  return `${JSON.stringify(objects, null, 2)}\n`;
}

export function save(name: string, type: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
