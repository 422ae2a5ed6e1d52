// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { nextOn, wayOf } from "./keys";

describe("arrow keys", () => {
  const places = [
    ["east", { x: 10, y: 1 }],
    ["farther east", { x: 20, y: 0 }],
    ["north", { x: 1, y: -10 }],
    ["itself", { x: 0, y: 0 }],
  ] as const;
  it.each([
    ["ArrowRight", "east"],
    ["ArrowUp", "north"],
    ["ArrowLeft", undefined],
    ["ArrowDown", undefined],
  ])("%s leads to %s", (key, found) => expect(nextOn(wayOf(key) ?? { x: 0, y: 0 }, { x: 0, y: 0 }, places)).toBe(found));

  it("other keys are no way", () => expect(wayOf("Enter")).toBeUndefined());
});
