// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { type BookingsDocument, bookingsOf, heldAt, stays } from "./bookings";
import { coloured, finder, instants, OTHERS, stackOf } from "./layers";
import { measuredOf, pictureOf } from "./picture";
import { following, frameOf, pointsOf, rounded, shownRange } from "./range";

type Triple = [begin: number, end: number, rate: number];
const us = (segments: Triple[]): Triple[] => segments.map(([begin, end, rate]) => [begin * 1e6, end * 1e6, rate]);

function transfer(id: string, segments: Triple[], project: string | null = null): BookingsDocument["transfers"][number] {
  return {
    id,
    label: `label of ${id}`,
    project,
    state: "RESERVED",
    source: "A",
    destination: "B",
    booked_bytes: 0,
    segments: us(segments),
  };
}

function bookings(transfers: BookingsDocument["transfers"], rest: Triple[] = [], others = 0) {
  return bookingsOf({ transfers, rest: { transfers: others, booked_bytes: 0, segments: us(rest) } });
}

const THREE = [
  transfer("a", [[0, 10, 5]], "p"),
  transfer(
    "b",
    [
      [2, 4, 7],
      [4, 6, 1],
    ],
    "q",
  ),
  transfer("c", [[5, 8, 2]], "p"),
]; // prettier-ignore

describe("who holds what", () => {
  it("names them with their rates, the most first", () => {
    const at = (time: number) => heldAt(bookings(THREE), time).map(({ holder, bps }) => [holder?.id, bps]);
    expect(at(3)).toEqual([
      ["b", 7],
      ["a", 5],
    ]); // prettier-ignore
    expect(at(4)).toEqual([
      ["a", 5],
      ["b", 1],
    ]); // prettier-ignore
    expect(at(10)).toEqual([]);
  });

  it("adds up the paths of one transfer", () => {
    expect(
      heldAt(
        bookings([
          transfer("a", [
            [0, 10, 5],
            [0, 10, 3],
          ]),
        ]),
        1,
      ),
    ).toMatchObject([{ bps: 8 }]); // prettier-ignore
  });

  it("gives what is not named to the rest", () => {
    expect(heldAt(bookings(THREE, [[0, 1, 9]], 4), 0)).toMatchObject([{ holder: undefined, bps: 9 }, { bps: 5 }]);
  });

  it("says from when to when, and how much, within a range", () => {
    const found = stays(bookings(THREE), [1, 5]).map(({ holder, begin, end, highestBps, bytes }) => [
      holder.id,
      begin,
      end,
      highestBps,
      bytes * 8,
    ]);
    expect(found).toEqual([
      ["a", 1, 5, 5, 20],
      ["b", 2, 5, 7, 15],
    ]);
  });
});

describe("the stack", () => {
  const shown = (of: ReturnType<typeof stackOf>) => of.layers.map(({ key, values }) => [key, ...values]);

  it("has a layer for each of the largest, and one for the others", () => {
    const stack = stackOf(bookings(THREE), "transfer", 1, [0, 10], 100);
    expect([...stack.x]).toEqual([0, 2, 4, 5, 6, 8]);
    expect(shown(stack)).toEqual([
      ["a", 5, 5, 5, 5, 5, 5],
      [OTHERS, 0, 7, 1, 3, 2, 0],
    ]);
    expect(stack.layers[1]?.label).toBe("2 other transfers");
  });

  it("gives a single one left over its own name", () => {
    expect(stackOf(bookings(THREE), "transfer", 2, [0, 10], 100).layers.map(({ key }) => key)).toEqual(["a", "b", "c"]);
  });

  it("adds up projects, and the rest, which has none, to the others", () => {
    const stack = stackOf(bookings(THREE, [[0, 1, 9]], 4), "project", 5, [0, 10], 100);
    expect(stack.layers.map(({ key, count }) => [key, count])).toEqual([
      ["p", 2],
      ["q", 1],
      [OTHERS, 4],
    ]); // prettier-ignore
    expect([...(stack.layers[0]?.values ?? [])]).toEqual([5, 5, 5, 5, 7, 7, 5]);
  });

  it("leaves out what lies outside of the range", () => {
    expect(shown(stackOf(bookings(THREE), "transfer", 5, [7, 9], 100))).toEqual([
      ["a", 5, 5],
      ["c", 2, 0],
    ]);
  });

  it("keeps what a column of pixels shows: how it begins, its peak and its trough", () => {
    const segments = Array.from(
      { length: 1000 },
      (_, index): Triple => [index, index + 1, index === 501 ? 90 : index === 777 ? 1 : 10 + (index % 2)],
    );
    const x = instants(bookings([transfer("a", segments)]), [0, 1000], 10);
    expect(x.length).toBeLessThanOrEqual(30);
    expect(x).toContain(501);
    expect(x).toContain(777);
    expect([...x]).toEqual([...x].sort((a, b) => a - b));
    const { layers } = stackOf(bookings([transfer("a", segments)]), "transfer", 5, [0, 1000], 10);
    expect(Math.max(...(layers[0]?.values ?? []))).toBe(90);
  });

  it("agrees with an addition by hand, at every instant", () => {
    let seed = 7;
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    const many = Array.from({ length: 40 }, (_, index) => {
      const begin = random(500);
      return transfer(`t${index}`, [
        [begin, begin + 1 + random(200), 1 + random(9)],
        [600, 601 + random(50), 1 + random(9)],
      ]); // prettier-ignore
    });
    const of = bookings(many);
    const { x, layers } = stackOf(of, "transfer", 6, [0, 1000], 10_000);
    x.forEach((time, index) => {
      const sum = layers.reduce((total, { values }) => total + values[index]!, 0);
      expect(sum).toBe(heldAt(of, time).reduce((total, { bps }) => total + bps, 0));
    });
  });
});

it("finds places as a search through all of them does", () => {
  const x = Float64Array.of(0, 0.5, 3, 3.25, 3.5, 9);
  const place = finder(x, [0, 10], 4);
  for (const value of [-1, 0, 0.2, 0.5, 2, 3, 3.3, 3.6, 9, 9.5, 10, 99]) {
    const found = x.findIndex((at) => at >= value);
    expect(place(value)).toBe(found < 0 ? x.length : found);
  }
});

describe("colours", () => {
  it("stay with their layer", () => {
    const before = coloured(["a", "b", "c", OTHERS], new Map());
    const after = coloured(["d", "c", OTHERS, "a"], before);
    expect(after.get("c")).toBe(before.get("c"));
    expect(after.get("a")).toBe(before.get("a"));
    expect(after.get("d")).toBe(before.get("b"));
    expect(new Set(after.values()).size).toBe(4);
  });
});

describe("the picture", () => {
  it("says nothing of what was not asked for, nor of what nobody measured", () => {
    const stack = stackOf(bookings(THREE), "transfer", 5, [0, 9], 100);
    const measured = measuredOf({ begin_us: 0, span_us: 4e6, rates_bps: [3, null] });
    const { x, series } = pictureOf(stack, { x: [0], values: [10] }, measured, [0, 9], new Map());
    const at = (key: string, time: number) => series.find((one) => one.key === key)?.values[x.indexOf(time)];
    expect(at("capacity", 8)).toBe(10);
    expect(at("capacity", 9)).toBeNaN();
    expect(at("layer-0", 9)).toBeNaN();
    expect(at("measured", 0)).toBe(3);
    expect(at("measured", 4)).toBeNaN();
  });
});

describe("ranges", () => {
  it("follows time until the URL has a range", () => {
    expect(shownRange({ span: "1h", from: null, to: null }, 10_000)).toEqual(following("1h", 10_000));
    expect(shownRange({ span: "1h", from: 5, to: 9 }, 10_000)).toEqual([5, 9]);
    expect(shownRange({ span: "1h", from: 9, to: 5 }, 10_000)).toEqual(following("1h", 10_000));
    const [from, to] = following("24h", 1_000_000);
    expect(to - from).toBe(30 * 3600);
    expect(from + 6 * 3600).toBeLessThanOrEqual(1_000_000);
  });

  it.each([[[0, 100]], [[1_767_225_600.5, 1_767_225_601.25]], [[1_767_225_600, 1_767_830_400]]] as const)(
    "asks for more than %s on both sides",
    ([from, to]) => {
      const [begin, end] = frameOf([from, to]);
      const length = to - from;
      expect(from - begin).toBeGreaterThan(length / 8);
      expect(end - to).toBeGreaterThan(length / 8);
      expect(end - begin).toBeLessThanOrEqual(2 * length);
      expect(pointsOf([begin, end], [from, to])).toBeGreaterThanOrEqual(2_000);
      // A small move asks nothing new.
      const middle = begin + (end - begin) / 2;
      expect(frameOf([middle - length / 2, middle + length / 2])).toEqual(
        frameOf([middle - length / 2, middle + length / 2 - length / 1e6]),
      );
    },
  );

  it("rounds what a hand has drawn", () => {
    expect(rounded([59, 301], 30)).toEqual([60, 300]);
    expect(rounded([59.2, 59.3], 0.01)).toEqual([59, 60]);
  });
});
