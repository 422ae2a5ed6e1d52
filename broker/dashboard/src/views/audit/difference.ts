// SPDX-License-Identifier: Apache-2.0
// What an event changed: two documents, field by field, with nested ones as "reason.code". Pure.

export type Value = string | number | boolean | null;

export interface Row {
  field: string;
  before: Value | undefined;
  after: Value | undefined;
  changed: boolean;
}

type Document = { [key: string]: unknown } | null;

export function difference(before: Document, after: Document): Row[] {
  const was = flat(before);
  const is = flat(after);
  const fields = [...new Set([...was.keys(), ...is.keys()])];
  const rows = fields.map((field) => ({
    field,
    before: was.get(field),
    after: is.get(field),
    changed: was.get(field) !== is.get(field),
  }));
  // What changed first, each part in the order in which it was written.
  return [...rows.filter((row) => row.changed), ...rows.filter((row) => !row.changed)];
}

/** In a line of the table: the fields that changed, the state before all others. */
export function changes(before: Document, after: Document): Row[] {
  const rows = difference(before, after).filter((row) => row.changed && row.field !== "plan_revision");
  return [...rows.filter((row) => row.field === "state"), ...rows.filter((row) => row.field !== "state")];
}

function flat(document: Document, prefix = "", into = new Map<string, Value>()): Map<string, Value> {
  for (const [name, value] of Object.entries(document ?? {})) {
    const field = prefix + name;
    if (Array.isArray(value)) into.set(field, value.every(isPlain) ? value.join(", ") : JSON.stringify(value));
    else if (isPlain(value)) into.set(field, value);
    else if (typeof value === "object") flat(value as Document, `${field}.`, into);
  }
  return into;
}

function isPlain(value: unknown): value is Value {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

/** "rate_max_bps" -> "Rate max", "reason.limited_by" -> "Reason: limited by" */
export function fieldName(field: string): string {
  const words = field
    .replace(/_(bps|bytes|us|s)$/, "")
    .replaceAll(".", ": ")
    .replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export type Unit = "rate" | "volume" | "seconds" | "microseconds" | "time" | "plain";

/** How to show a value, by the name of its field and what it looks like. */
export function unitOf(field: string, value: Value | undefined): Unit {
  if (typeof value === "string") return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(value) ? "time" : "plain";
  if (typeof value !== "number") return "plain";
  if (field.endsWith("bps")) return "rate";
  if (field.endsWith("_bytes") || field.endsWith("bytes_done")) return "volume";
  if (field.endsWith("_us")) return "microseconds";
  return field.endsWith("_s") ? "seconds" : "plain";
}
