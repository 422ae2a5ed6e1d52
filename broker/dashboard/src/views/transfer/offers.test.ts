// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { Problem } from "../../api/problem";
import { local } from "../../format/time";
import { bindingOf, brokenBy, offersOf } from "./offers";

const refused = (document: Record<string, unknown>): Problem =>
  new Problem(409, "infeasible", "Infeasible", "does not fit", [], document);
const AT = "2026-01-01T10:00:00Z";

test("every offer is a change that one click makes", () => {
  const counter_offers = [
    { kind: "earliest_finish", finish: AT },
    { kind: "smallest_deadline", deadline: AT },
    { kind: "largest_volume", volume_bytes: 10 ** 12 },
    { kind: "smallest_rate", rate_max_bps: 10 ** 10 },
    { kind: "largest_rate_min", rate_min_bps: null },
    { kind: "longest_duration", duration_s: 90 },
    { kind: "of a newer broker", wormholes: 1 },
  ];
  expect(offersOf(refused({ counter_offers }))).toEqual([
    { title: `Without a deadline: finishes ${local(AT)}`, change: { deadline: null } },
    { title: `Deadline ${local(AT)}`, change: { deadline: AT } },
    { title: "Only 1\u202fTB", change: { volume_bytes: 10 ** 12 } },
    { title: "Up to 10\u202fGbit/s", change: { rate_max_bps: 10 ** 10 } },
    { title: "Without a lowest rate", change: { rate_min_bps: null } },
    { title: "For 1\u202fmin 30\u202fs", change: { duration_s: 90 } },
  ]);
});

test("a refusal without an explanation has neither offers nor a link that binds", () => {
  const plain = refused({});
  expect([offersOf(plain), bindingOf(plain), brokenBy(plain)]).toEqual([[], undefined, []]);
});

test("the link that binds, when, and who holds it", () => {
  const binding = { link: "L1", interval: { from: AT, to: AT }, reservations: ["tr_1"] };
  expect(bindingOf(refused({ binding }))).toEqual({ link: "L1", from: AT, to: AT, reservations: ["tr_1"] });
});
