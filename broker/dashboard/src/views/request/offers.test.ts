// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Quote } from "../../api/types";
import { iso } from "../../format/time";
import { best, offerOf, refusals, waysOut } from "./offers";

const quote = (planner: string, finish: number, rates: number[], books = true): Quote => ({
  planner,
  books,
  admitted: true,
  problem: null,
  plan: {
    planner,
    start: iso(0),
    finish: iso(finish),
    segments: rates.map((rate_bps, i) => ({
      begin: iso((finish * i) / rates.length),
      end: iso((finish * (i + 1)) / rates.length),
      rate_bps,
      path: ["L"],
    })),
    paths: [["L"]],
    metrics: { congestion_factor: Math.max(...rates) / 10 },
  },
});

const refused = (planner: string, more: object, detail = "it does not fit"): Quote => ({
  planner,
  books: true,
  admitted: false,
  plan: null,
  problem: { type: "x/problems/infeasible", title: "Infeasible", status: 409, detail, ...more },
});

describe("comparing offers", () => {
  const offers = [quote("vbls", 100, [9, 4]), quote("fbls", 150, [4]), quote("ifs", 10, [1], false)].map(offerOf);

  it("counts what can be compared", () => {
    expect(offers[0]).toMatchObject({ changes: 1, peakBps: 9, congestion: 0.9, paths: [["L"]] });
  });

  it("finds the best of those that can be booked", () => {
    const found = best(offers);
    expect([...found.finish]).toEqual(["vbls"]);
    expect([...found.changes]).toEqual(["fbls"]);
    expect([...found.peakBps]).toEqual(["fbls"]);
  });

  it("points at nobody where all are alike", () =>
    expect(best([offerOf(quote("vbls", 5, [1])), offerOf(quote("fbls", 5, [1]))]).finish.size).toBe(0));
});

describe("refusals", () => {
  const binding = { link: "L", interval: { from: iso(0), to: iso(100) } };
  const offers = [{ kind: "smallest_deadline", deadline: iso(200.5) }];

  it("are one answer where planners agree", () => {
    const said = { binding, counter_offers: offers };
    const more = { binding, counter_offers: [{ kind: "earliest_finish", finish: iso(200) }, ...offers] };
    const groups = refusals(
      [refused("vbls", said), refused("alap", more, "other words"), refused("fbls", {}), quote("ifs", 1, [1])].map(offerOf),
    );
    expect(groups.map((group) => group.planners)).toEqual([["vbls", "alap"], ["fbls"]]);
    expect(groups[0]!.refusal.counterOffers).toHaveLength(2);
  });

  it("offer changes of the form", () => {
    const all = [
      ...offers,
      { kind: "largest_volume", volume_bytes: 123_456_789 },
      { kind: "smallest_rate", rate_max_bps: 5_000 },
      { kind: "largest_rate_min", rate_min_bps: null },
      { kind: "longest_duration", duration_s: 60 },
      { kind: "earliest_finish", finish: iso(300) },
      { kind: "of_a_later_broker" },
    ];
    const { refusal } = offerOf(refused("vbls", { counter_offers: all }));
    const changes = waysOut(refusal!, 100).map((way) => way.change);
    expect(Date.parse(changes[0]!.deadline!)).toBeGreaterThan(200_500);
    expect(changes.slice(1)).toEqual([
      { volume_bytes: 120_000_000 },
      { rate_max_bps: 5_000 },
      { rate_min_bps: null },
      { duration_s: 60 },
      { deadline: null },
    ]);
  });
});
