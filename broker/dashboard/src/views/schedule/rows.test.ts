// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { example } from "./example.test-data";
import { linkNames } from "./link-names";
import { grouped, rowsOf, type Scheduled, stepAt, stepsBetween, summed, within } from "./rows";

const S = 1e6;

function transfer(id: string, segments: Scheduled["segments"], more: Partial<Scheduled> = {}): Scheduled {
  return { ...example, id, label: id, paths: [["AB", "BC"], ["AC"]], segments, ...more };
}

const plain = ({ begins, ends, rates }: ReturnType<typeof summed>) =>
  [...begins].map((begin, index) => [begin, ends[index], rates[index]]);

describe("steps of a row", () => {
  it("adds up what goes over several paths at once", () => {
    const steps = summed([
      [0, 10 * S, 4, 0],
      [5 * S, 15 * S, 3, 1],
    ]);
    expect(plain(steps)).toEqual([
      [0, 5, 4],
      [5, 10, 7],
      [10, 15, 3],
    ]);
  });

  it("joins what goes on at the same rate, and keeps gaps", () => {
    const steps = summed([
      [20 * S, 30 * S, 2, 0],
      [0, 5 * S, 2, 0],
      [5 * S, 10 * S, 2, 1],
    ]);
    expect(plain(steps)).toEqual([
      [0, 10, 2],
      [20, 30, 2],
    ]);
  });

  it("finds the step of an instant; begin belongs to it, end does not", () => {
    const steps = summed([
      [0, 10 * S, 1, 0],
      [20 * S, 30 * S, 2, 0],
    ]);
    expect([-1, 0, 9.9, 10, 20, 30].map((time) => stepAt(steps, time))).toEqual([-1, 0, 0, -1, 1, -1]);
    expect(stepsBetween(steps, 5, 20)).toEqual([0, 1]);
    expect(stepsBetween(steps, 10, 20)).toEqual([1, 1]);
    expect(stepsBetween(steps, 10, 20.1)).toEqual([1, 2]);
  });
});

describe("rows", () => {
  const two = transfer("two", [
    [0, 10 * S, 4, 0],
    [0, 10 * S, 6, 1],
  ]);
  const late = transfer("late", [[50 * S, 60 * S, 1, 0]], { state: "ACTIVE", paused: true, project: "p" });

  it("comes in order of its begin, with its state", () => {
    const rows = rowsOf([late, two]);
    expect(rows.map(({ key, state, peak }) => [key, state, peak])).toEqual([
      ["two", "RESERVED", 10],
      ["late", "PAUSED", 1],
    ]);
  });

  it("has only what lies on the chosen link", () => {
    expect(rowsOf([late, two], new Set(["AC"])).map(({ key, peak }) => [key, peak])).toEqual([["two", 6]]);
  });

  it("is there when something of it lies in the range", () => {
    expect(within(rowsOf([two, late]), 9, 50).map((row) => row.key)).toEqual(["two"]);
  });

  it("stands under each of its links with its share of each", () => {
    const lines = grouped(rowsOf([two, late]), "link", (link) => `link ${link}`);
    expect(
      lines.map((line) => (line.is === "header" ? [line.header.name, line.header.count] : [line.row.key, line.row.peak])),
    ).toEqual([
      ["link AB", 2],
      ["AB/two", 4],
      ["AB/late", 1],
      ["link AC", 1],
      ["AC/two", 6],
      ["link BC", 2],
      ["BC/two", 4],
      ["BC/late", 1],
    ]);
  });

  it("is grouped by both ends, and by project", () => {
    const names = (by: "host" | "project") =>
      grouped(rowsOf([two, late]), by, (group) => group || "none").flatMap((line) =>
        line.is === "header" ? line.header.name : [],
      );
    expect(names("host")).toEqual(["A", "C"]);
    expect(names("project")).toEqual(["none", "p"]);
  });
});

it("tells links between the same nodes apart", () => {
  const links = ["AB", "AB2", "BC"].map((id) => ({ id, source: id[0]!, target: id[1]! }));
  expect([...linkNames(links).values()]).toEqual(["A → B (AB)", "A → B (AB2)", "B → C"]);
});
