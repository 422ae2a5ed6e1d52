// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { align, stepAt } from "./align";
import { drawSteps, type Pen } from "./decimate";
import { stacked, top } from "./stack";

const MAP = { x0: 0, xScale: 1, y0: 0, yScale: 1 };

function drawn(x: number[], y: number[], right: number, map = MAP): string {
  const said: string[] = [];
  const pen: Pen = {
    moveTo: (px, py) => said.push(`M${px},${py}`),
    lineTo: (px, py) => said.push(`L${px},${py}`),
    column: (left, end, low, high) => said.push(`C${left}-${end},${low}..${high}`),
    end: (px) => said.push(`E${px}`),
  };
  drawSteps(x, y, [0, x.length], right, map, pen);
  return said.join(" ");
}

describe("align", () => {
  it("puts step functions over one x", () => {
    const both = align([
      { x: [0, 10, 20], values: [1, 2, 3] },
      { x: [5, 10, 15], values: [7, 8, 9] },
    ]);
    expect([...both.x]).toEqual([0, 5, 10, 15, 20]);
    expect([...both.values[0]!]).toEqual([1, 1, 2, 2, 3]);
    expect([...both.values[1]!]).toEqual([Number.NaN, 7, 8, 9, 9]);
  });

  it("takes the later of two values at one instant", () => {
    const one = align([{ x: [0, 5, 5], values: [1, 2, 3] }]);
    expect([...one.x]).toEqual([0, 5]);
    expect([...one.values[0]!]).toEqual([1, 3]);
  });

  it.each([
    [-1, -1],
    [0, 0],
    [9.9, 0],
    [10, 1],
    [99, 2],
  ])("finds the step at %s", (time, index) => expect(stepAt([0, 10, 20], time)).toBe(index));
});

describe("drawSteps", () => {
  it("draws a corner for every change and holds the last", () => {
    expect(drawn([0, 10, 20], [5, 8, 5], 30)).toBe("M0,5 L10,5 L10,8 L20,8 L20,5 L30,5 E30");
  });

  it("draws nothing for what does not change", () => {
    expect(drawn([0, 10, 20], [5, 5, 5], 30)).toBe("M0,5 L30,5 E30");
  });

  it("lifts the pen where nothing is known", () => {
    expect(drawn([0, 10, 20, 30], [Number.NaN, 5, Number.NaN, 6], 40)).toBe("M10,5 L20,5 E20 M30,6 L40,6 E40");
  });

  it("keeps the extremes of a column, in few points", () => {
    const x = Array.from({ length: 1000 }, (_, i) => 0.5 + i / 2500);
    const y = x.map((_, i) => (i === 300 ? 99 : i === 600 ? -99 : i % 7));
    expect(drawn(x, y, 2)).toBe(`M0.5,0 L${x[1]},0 C${x[1]}-1,-99..99 L1,5 L2,5 E2`);
  });
});

describe("stack", () => {
  it("sums from the bottom, and what is unknown adds nothing", () => {
    const layers = stacked([Float64Array.of(1, 2), Float64Array.of(10, Number.NaN)]);
    expect(layers.map((layer) => [...layer])).toEqual([
      [1, 2],
      [11, 2],
    ]);
  });

  it("keeps the largest and adds up the others", () => {
    const series = [1, 30, 2, 20].map((value, index) => ({
      key: `k${index}`,
      label: `l${index}`,
      values: Float64Array.of(value, value),
    }));
    const kept = top(series, 2, [0, 10]);
    expect(kept.map((one) => one.label)).toEqual(["l1", "l3", "2 others"]);
    expect([...kept[2]!.values]).toEqual([3, 3]);
  });
});
