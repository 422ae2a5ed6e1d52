// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { steady } from "./steady";

const row = (id: string, value = 0) => ({ id, value });
const keyOf = ({ id }: { id: string }): string => id;
const held = (shown: string[], fresh: string[]) => {
  const { rows, waiting } = steady(
    shown.map((id) => row(id)),
    fresh.map((id) => row(id)),
    keyOf,
  );
  return [rows.map(keyOf).join(""), waiting];
};

test("contents change in place", () => {
  expect(steady([row("a"), row("b")], [row("a", 1), row("b", 2)], keyOf)).toEqual({ rows: [row("a", 1), row("b", 2)], waiting: 0 });
});

test("new rows above and among the others wait, those behind come in", () => {
  expect(held(["a", "b"], ["n", "a", "b"])).toEqual(["ab", 1]);
  expect(held(["a", "b"], ["a", "n", "b"])).toEqual(["ab", 1]);
  expect(held(["a", "b"], ["a", "b", "c", "d"])).toEqual(["abcd", 0]);
});

test("rows that are gone stay, and rows that would move do not", () => {
  expect(held(["a", "b", "c"], ["a", "c"])).toEqual(["abc", 1]);
  expect(held(["a", "b", "c"], ["c", "a", "b"])).toEqual(["abc", 3]);
});
