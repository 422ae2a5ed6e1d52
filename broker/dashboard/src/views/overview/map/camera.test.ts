// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { cameraOf, moved, read, whole, written, zoomed } from "./camera";

const box = { left: 0, top: 0, width: 1, height: 0.5 };
const screen = { width: 1000, height: 800 };

describe("camera", () => {
  it("fits the whole network on the screen, in the middle", () => {
    const { toScreen } = cameraOf(whole(box), box, screen);
    expect(toScreen({ x: 0.5, y: 0.25 })).toEqual({ x: 500, y: 400 });
    expect(toScreen({ x: 0, y: 0 }).x).toBeCloseTo(90);
    expect(toScreen({ x: 1, y: 0.5 }).x).toBeCloseTo(910);
  });

  it("leads from the plane to the screen and back", () => {
    const { toScreen, toPlane } = cameraOf({ x: 0.3, y: 0.2, zoom: 4 }, box, screen);
    const back = toPlane(toScreen({ x: 0.7, y: 0.1 }));
    expect(back.x).toBeCloseTo(0.7);
    expect(back.y).toBeCloseTo(0.1);
  });
});

describe("moves", () => {
  it("come nearer around the pointer", () => {
    const around = { x: 0.4, y: 0.2 };
    const before = cameraOf({ x: 0.5, y: 0.25, zoom: 2 }, box, screen).toScreen(around);
    const after = cameraOf(zoomed({ x: 0.5, y: 0.25, zoom: 2 }, 1.5, around, box), box, screen).toScreen(around);
    expect(after.x).toBeCloseTo(before.x);
    expect(after.y).toBeCloseTo(before.y);
  });

  it("end at the whole network and at the edge of it", () => {
    expect(zoomed({ x: 0.9, y: 0.4, zoom: 2 }, 0.1, { x: 0.9, y: 0.4 }, box)).toEqual(whole(box));
    expect(zoomed(whole(box), 1e6, { x: 0, y: 0 }, box).zoom).toBe(20);
    expect(moved({ x: 0.5, y: 0.25, zoom: 2 }, 9, -9, box)).toEqual({ x: 0.75, y: 0.125, zoom: 2 });
  });
});

describe("in the URL", () => {
  it("is written and read back; the whole network is nothing", () => {
    const sight = { x: 0.6, y: 0.3, zoom: 2.5 };
    expect(read(written(sight), box)).toEqual(sight);
    expect(written(whole(box))).toBe("");
  });
  it.each(["", "x", "1,2", "1,2,3,4", "1,NaN,2", "1,2,Infinity"])("%j is the whole network", (text) =>
    expect(read(text, box)).toEqual(whole(box)),
  );
  it("what lies outside is brought in", () => expect(read("99,-99,4", box)).toEqual({ x: 0.875, y: 0.0625, zoom: 4 }));
});
