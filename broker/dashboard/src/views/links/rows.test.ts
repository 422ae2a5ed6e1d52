// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import type { Link, Window } from "../../api/types";
import { matching, nextWindow, rowsOf } from "./rows";
import { outline } from "./sparkline";

const link = (id: string, source: string, target: string, host: string | null = null): Link => ({
  id,
  source,
  target,
  host,
  capacity_bps: 10,
  mtu_bytes: null,
  channel_bps: null,
  slot_us: 1,
  metric: null,
  available: [],
  windows: [],
  reverse: null,
  version: 0,
  revision: 1,
}); // prettier-ignore
const LINKS = [
  link("L1", "chic-cr6", "star-cr6"),
  link("L2", "star-cr6", "chic-cr6"),
  link("dtn01.bnl~up", "dtn01.bnl", "bnl-cr6", "dtn01.bnl"),
];
const ids = (links: readonly Link[]) => links.map(({ id }) => id);

it("finds links by words in any order, and keeps NICs apart", () => {
  expect(ids(matching(LINKS, "network", ""))).toEqual(["L1", "L2"]);
  expect(ids(matching(LINKS, "nic", ""))).toEqual(["dtn01.bnl~up"]);
  expect(ids(matching(LINKS, "all", "STAR chic"))).toEqual(["L1", "L2"]);
  expect(ids(matching(LINKS, "all", "l2"))).toEqual(["L2"]);
});

it("knows nothing of a load that has not come, and of a closed link none", () => {
  const load = (shares: (number | null)[]) => ({ begin: "", end: "", steps: shares.length, links: [{ id: "L1", shares }] });
  expect(rowsOf(LINKS.slice(0, 1), undefined, undefined, 0)[0]).toMatchObject({ now: undefined, peak: null, ahead: [] });
  expect(rowsOf(LINKS.slice(0, 1), load([null]), load([0.2, null, 0.7]), 0)[0]).toMatchObject({ now: null, peak: 0.7 });
});

it("names the window that holds now, else the next one", () => {
  const window = (id: string, begin: number, end: number): Window => {
    const time = (hour: number) => new Date(hour * 3_600_000).toISOString();
    return { id, begin: time(begin), end: time(end), bps: 0, kind: "outage", reason: null };
  };
  const windows = [window("late", 8, 9), window("open", 1, 5), window("over", 0, 1)];
  expect(nextWindow(windows, 2 * 3600)?.id).toBe("open");
  expect(nextWindow(windows, 6 * 3600)?.id).toBe("late");
  expect(nextWindow(windows, 9 * 3600)).toBeUndefined();
});

it("draws shares as steps, with gaps where nothing may be used", () => {
  expect(outline([0, 0.5, null, 2], 40, 10)).toBe("M0,10H10V5H20M30,0H40");
});
