// SPDX-License-Identifier: Apache-2.0
// The limit of lines, for what the formatter does not break: comments and markup. Long texts may stand on one line.
import { expect, it } from "vitest";

const COLUMNS = 132; // as in biome.jsonc
const TEXTS = /"(?:[^"\\]|\\.)*"|`[^`]*`/g;

const FILES = import.meta.glob<string>(["./**/*.{ts,tsx}", "!./api/schema.d.ts"], {
  query: "?raw",
  import: "default",
  eager: true,
});

it("has no line that must be scrolled", () => {
  const long = Object.entries(FILES).flatMap(([name, text]) =>
    text.split("\n").flatMap((line, index) => (line.replace(TEXTS, "").length > COLUMNS ? [`${name}:${index + 1}`] : [])),
  );
  expect(Object.keys(FILES).length).toBeGreaterThan(100);
  expect(long).toEqual([]);
});
