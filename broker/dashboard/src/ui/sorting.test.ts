// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { sorted, toggled } from "./sorting";

it("sorts numbers, names with numbers in them, and puts nothing last", () => {
  expect(sorted([3, null, 1, 2], (x) => x, false)).toEqual([1, 2, 3, null]);
  expect(sorted([3, null, 1, 2], (x) => x, true)).toEqual([3, 2, 1, null]);
  expect(sorted(["r10", "r9", "R1"], (x) => x, false)).toEqual(["R1", "r9", "r10"]);
});

it("turns round on the second click", () => {
  expect(toggled(undefined, "finish")).toBe("finish");
  expect(toggled("finish", "finish")).toBe("-finish");
  expect(toggled("-finish", "finish")).toBe("finish");
  expect(toggled("-finish", "state")).toBe("state");
});
