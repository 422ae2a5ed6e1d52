// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { changes, difference, fieldName, unitOf } from "./difference";

test("what changed comes first, nested documents field by field", () => {
  const before = { label: "a", state: "ACTIVE", reason: null };
  const after = { label: "a", state: "FAILED", reason: { code: "lost", until: null }, paths: ["L1", "L2"] };
  expect(difference(before, after)).toEqual([
    { field: "state", before: "ACTIVE", after: "FAILED", changed: true },
    { field: "reason", before: null, after: undefined, changed: true },
    { field: "reason.code", before: undefined, after: "lost", changed: true },
    { field: "reason.until", before: undefined, after: null, changed: true },
    { field: "paths", before: undefined, after: "L1, L2", changed: true },
    { field: "label", before: "a", after: "a", changed: false },
  ]);
});

test("of something new everything is new, of something gone everything was", () => {
  expect(difference(null, { a: 1 })).toEqual([{ field: "a", before: undefined, after: 1, changed: true }]);
  expect(difference({ a: [{ b: 1 }] }, null)).toEqual([{ field: "a", before: '[{"b":1}]', after: undefined, changed: true }]);
  expect(difference(null, null)).toEqual([]);
});

test("a line of the table begins with the state and leaves the counter out", () => {
  const rows = changes({ finish: 1, state: "RESERVED", plan_revision: 1 }, { finish: 2, state: "ACTIVE", plan_revision: 2 });
  expect(rows.map((row) => row.field)).toEqual(["state", "finish"]);
});

test("fields are words, and values have units", () => {
  expect(["rate_max_bps", "volume_bytes", "reason.limited_by", "duration_s"].map(fieldName)).toEqual([
    "Rate max",
    "Volume",
    "Reason: limited by",
    "Duration",
  ]);
  expect(unitOf("bps", 5)).toBe("rate");
  expect(unitOf("bytes_done", 5)).toBe("volume");
  expect(unitOf("slot_us", 1)).toBe("microseconds");
  expect(unitOf("finish", "2026-01-01T00:00:00.123456Z")).toBe("time");
  expect(unitOf("label", "2026-01-01")).toBe("plain");
  expect(unitOf("priority", 5)).toBe("plain");
});
