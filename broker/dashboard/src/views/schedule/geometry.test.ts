// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { example } from "./example.test-data";
import { boxesOf, placeAt, scrollTo, timeAt, topOf, type Viewport, visibleLines, xOf } from "./geometry";
import { centreOf, revealing, walked } from "./keys";
import { asked, following, limited } from "./range";
import { grouped, rowsOf, type Scheduled } from "./rows";
import { ticksOf } from "./ticks";
import { kept } from "./use-scroll";

// One second is ten pixels: 0 s at x = 100, 100 s at x = 1100.
const VIEW: Viewport = { range: [0, 100], width: 1100, height: 440, gutter: 100, axis: 40, rowPx: 40, scroll: 0 };

function transfers(count: number, steps: number): Scheduled[] {
  return Array.from({ length: count }, (_, index) => ({
    ...example,
    id: `t${String(index).padStart(5, "0")}`,
    project: `p${index % 2}`,
    segments: Array.from({ length: steps }, (_, step) => [(index + 2 * step) * 1e6, (index + 2 * step + 1) * 1e6, 1 + step, 0]),
  }));
}

const linesOf = (given: Scheduled[]) => grouped(rowsOf(given), "none", String);

describe("places", () => {
  it("goes from time to pixel and back", () => {
    expect(xOf(VIEW, 50)).toBe(600);
    expect(timeAt(VIEW, 600)).toBe(50);
  });

  it("knows which lines are seen, in part too", () => {
    expect(visibleLines(VIEW, 1000)).toEqual([0, 10]);
    expect(visibleLines({ ...VIEW, scroll: 60 }, 1000)).toEqual([1, 12]);
    expect(visibleLines({ ...VIEW, scroll: 60 }, 5)).toEqual([1, 5]);
  });

  it("scrolls no further than a line needs", () => {
    expect(scrollTo(VIEW, 3)).toBe(0);
    expect(scrollTo(VIEW, 10)).toBe(40);
    expect(scrollTo({ ...VIEW, scroll: 200 }, 2)).toBe(80);
  });

  it("keeps what is at the top there when lines before it go", () => {
    const lines = linesOf(transfers(10, 1));
    expect(kept(lines, lines.slice(3), 5.5)).toBe(2.5);
    expect(
      kept(
        lines,
        lines.filter((_, index) => index !== 5),
        5.5,
      ),
    ).toBe(5);
    expect(kept(lines, [], 5.5)).toBe(5.5);
  });
});

describe("what lies under the pointer", () => {
  const lines = linesOf(transfers(20, 3)); // row i: from i for a second, every other second, three times

  it.each([
    ["a step", 100 + 25, 40 + 2 * 40 + 5, { line: 2, step: 0 }],
    ["a later step", 100 + 65, 40 + 2 * 40 + 5, { line: 2, step: 2 }],
    ["between steps", 100 + 35, 40 + 2 * 40 + 5, { line: 2, step: -1 }],
    ["just beside a step", 100 + 33, 40 + 2 * 40 + 5, { line: 2, step: 0 }],
    ["a name", 10, 40 + 2 * 40 + 5, { line: 2, step: -1 }],
    ["the axis", 300, 20, undefined],
    ["below everything", 300, 439, { line: 9, step: -1 }],
  ])("%s", (_, x, y, place) => expect(placeAt(VIEW, lines, x, y)).toEqual(place));

  it("counts what is scrolled away", () =>
    expect(placeAt({ ...VIEW, scroll: 400 }, lines, 100 + 125, 45 + 80)).toEqual({ line: 12, step: 0 }));
  it("passes over headers", () =>
    expect(placeAt(VIEW, grouped(rowsOf(transfers(4, 1)), "project", String), 300, 45)).toBeUndefined());
});

describe("boxes", () => {
  it("are as wide as their steps, and never too narrow to be seen", () => {
    const [row] = rowsOf(transfers(1, 3));
    expect(boxesOf(VIEW, row!)).toEqual([
      { left: 100, right: 110, rate: 1 },
      { left: 120, right: 130, rate: 2 },
      { left: 140, right: 150, rate: 3 },
    ]);
    expect(boxesOf({ ...VIEW, range: [0, 1e6] }, row!)).toEqual([{ left: 100, right: 102.004, rate: 3 }]);
  });

  it("end at the edges", () => {
    const [row] = rowsOf(transfers(1, 1));
    expect(boxesOf({ ...VIEW, range: [0.25, 0.75] }, row!)).toEqual([{ left: 100, right: 1100, rate: 1 }]);
  });

  it("are no more than there are pixels", () => {
    const [row] = rowsOf(transfers(1, 50_000));
    expect(boxesOf({ ...VIEW, range: [0, 100_000] }, row!).length).toBeLessThan(600);
  });

  it("are as high as their rate, but seen", () => {
    expect(topOf(VIEW, 0, 1)).toBe(43);
    expect(topOf(VIEW, 0, 0.5)).toBe(60);
    expect(topOf(VIEW, 0, 0.0001)).toBe(74);
  });
});

it("looks at what is seen of ten thousand transfers, and at nothing else", () => {
  const lines = linesOf(transfers(10_000, 10));
  const view = { ...VIEW, range: [0, 10_000] as const, scroll: 200_000 };
  const [first, last] = visibleLines(view, lines.length);
  let boxes = 0;
  for (const line of lines.slice(first, last)) if (line.is === "row") boxes += boxesOf(view, line.row).length;
  expect(last - first).toBe(10);
  expect(boxes).toBeLessThanOrEqual(100);
});

describe("keys", () => {
  const lines = grouped(rowsOf(transfers(6, 3)), "project", String); // header, 3 rows, header, 3 rows
  const range = [3, 100] as const;

  it.each([
    ["ArrowDown", undefined, { line: 1, step: 2 }],
    ["ArrowDown", { line: 3, step: 0 }, { line: 5, step: 1 }],
    ["ArrowUp", { line: 5, step: 0 }, { line: 3, step: 0 }],
    ["ArrowUp", { line: 1, step: 0 }, undefined],
    ["ArrowRight", { line: 1, step: 1 }, { line: 1, step: 2 }],
    ["ArrowRight", { line: 1, step: 2 }, { line: 1, step: 2 }],
    ["ArrowLeft", undefined, undefined],
    ["End", undefined, { line: 7, step: 0 }],
    ["PageDown", { line: 1, step: 0 }, { line: 7, step: 0 }],
    ["x", { line: 1, step: 0 }, undefined],
  ])("%s from %j leads to %j", (key, from, place) => expect(walked(lines, from, key, 10, range)).toEqual(place));

  it("zooms around the step, as far as it is seen", () => {
    const [row] = rowsOf(transfers(1, 3)); // 0 to 1, 2 to 3, 4 to 5
    expect([0, 1, 2, -1].map((step) => centreOf([0.5, 2.5], row, step))).toEqual([0.75, 2.25, 1.5, 1.5]);
  });

  it("brings a step into sight, and leaves the range where it is seen", () => {
    const [row] = rowsOf(transfers(1, 3));
    expect(revealing([0, 1], row!, 0)).toEqual([0, 1]);
    expect(revealing([0, 1], row!, 2)).toEqual([3.75, 4.75]);
  });
});

describe("range", () => {
  it("looks ahead", () => expect(following(600, 600)).toEqual([500, 1100]));
  it("is limited around its middle", () => expect(limited([100, 101])).toEqual([70.5, 130.5]));

  it("asks for more than is shown, and the same for neighbours", () => {
    const [from, to] = asked([10_000, 13_600]);
    expect(from).toBeLessThan(10_000);
    expect(to).toBeGreaterThan(13_600);
    expect(asked([10_100, 13_700])).toEqual([from, to]);
    expect(to - from).toBeLessThanOrEqual(4 * 4096);
  });
});

describe("ticks", () => {
  const zone = (hours: number) => () => hours * 3600;
  it("lie on round local times", () =>
    expect(ticksOf([100, 4000], 6, zone(0))).toEqual({ step: 900, at: [900, 1800, 2700, 3600] }));
  it("begin days at midnight", () => expect(ticksOf([0, 3 * 86_400], 4, zone(2)).at).toEqual([79_200, 165_600, 252_000]));

  it("go on through the change to summer time", () => {
    const changes = (time: number) => (time < 100_000 ? 3600 : 7200);
    expect(ticksOf([0, 3 * 86_400], 4, changes).at).toEqual([82_800, 165_600, 252_000]);
  });
});
