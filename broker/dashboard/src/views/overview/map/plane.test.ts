// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { boxOf, projected } from "./plane";

describe("projected", () => {
  it("keeps north up, west left, and degrees of longitude shorter towards the pole", () => {
    const [geneva, newYork, tromso] = projected([
      { latitude: 46, longitude: 6 },
      { latitude: 41, longitude: -74 },
      { latitude: 70, longitude: 19 },
    ]);
    expect(newYork?.x).toBe(0);
    expect(geneva?.x).toBeCloseTo(80 * Math.cos((55.5 * Math.PI) / 180));
    expect(tromso?.y).toBeLessThan(geneva?.y ?? 0);
    expect(newYork?.y).toBeGreaterThan(geneva?.y ?? 0);
  });

  it("tears nothing apart at the date line", () => {
    const [tokyo, seattle] = projected([
      { latitude: 0, longitude: 140 },
      { latitude: 0, longitude: -122 },
    ]);
    expect(seattle?.x).toBeCloseTo(98);
    expect(tokyo?.x).toBeCloseTo(0);
  });

  it("takes none, and one", () => {
    expect(projected([])).toEqual([]);
    expect(projected([{ latitude: 10, longitude: -20 }])).toEqual([{ x: 0, y: -10 }]);
  });
});

it("boxes points", () => {
  expect(
    boxOf([
      { x: 1, y: 5 },
      { x: 4, y: 3 },
    ]),
  ).toEqual({ left: 1, top: 3, width: 3, height: 2 });
  expect(boxOf([])).toEqual({ left: 0, top: 0, width: 0, height: 0 });
});
