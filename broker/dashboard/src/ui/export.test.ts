// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { toCsv, toJson } from "./export";

const columns = [
  { key: "label", title: "Name", value: (row: { label: string | null; bytes: number }) => row.label },
  { key: "volume_bytes", title: "Volume", value: (row: { label: string | null; bytes: number }) => row.bytes },
];
const rows = [
  { label: 'a "b", c', bytes: 1 },
  { label: "=HYPERLINK(0)", bytes: -2 },
  { label: null, bytes: 3 },
];

it("quotes, and disarms formulas but not numbers", () => {
  expect(toCsv(columns, rows)).toBe('label,volume_bytes\r\n"a ""b"", c",1\r\n\'=HYPERLINK(0),-2\r\n,3\r\n');
});

it("keeps texts as they are in JSON", () => {
  expect(JSON.parse(toJson(columns, rows))).toEqual([
    { label: 'a "b", c', volume_bytes: 1 },
    { label: "=HYPERLINK(0)", volume_bytes: -2 },
    { label: null, volume_bytes: 3 },
  ]);
});
