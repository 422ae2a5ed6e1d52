// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { labelled } from "./labels";

const screen = { left: 0, top: 0, width: 400, height: 200 };
const wanted = (key: string, x: number, y: number, text = "Chicago") => ({ key, text, at: { x, y }, radius: 5 });

describe("labelled", () => {
  it("puts a name to the right, or where there is room", () => {
    expect(labelled([wanted("a", 100, 100)], 10, screen)).toEqual([{ key: "a", text: "Chicago", x: 105, y: 103.25 }]);
    expect(labelled([wanted("a", 395, 100)], 10, screen)[0]?.x).toBeLessThan(390);
  });

  it("never over another name or a dot; the important ones first", () => {
    const all = Array.from({ length: 30 }, (_, index) => wanted(String(index), 200, 100));
    const shown = labelled(all, 10, screen, [{ left: 205, top: 90, width: 50, height: 20 }]);
    expect(shown[0]?.key).toBe("0");
    expect(shown[0]?.x).toBeLessThan(200);
    expect(shown.length).toBeLessThan(9);
    expect(new Set(shown.map(({ x, y }) => `${x} ${y}`)).size).toBe(shown.length);
  });

  it("shows nothing beyond the screen", () => expect(labelled([wanted("a", 900, 100)], 10, screen)).toEqual([]));
});
