// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Host, Link } from "../../api/types";
import { iso } from "../../format/time";
import { type Concern, concernsOf, drifts, lasting, type Situation, unlisted } from "./attention";
import { SPAN_S } from "./load";

const NOW = Date.parse("2026-01-01T14:00:00Z") / 1000;

const link = (id: string, more: Partial<Link> = {}): Link => ({
  ...{ id, source: "A", target: "B", host: null, capacity_bps: 1e9, mtu_bytes: null, channel_bps: null, slot_us: 1, metric: null },
  ...{ available: [], windows: [], reverse: null, version: 0, revision: 0 },
  ...more,
});
const host = (name: string, more: Partial<Host> = {}): Host =>
  ({
    name,
    state: "up",
    revision: 3,
    fetched_revision: 3,
    booked_bps: 0,
    applied_bps: 0,
    clock: null,
    last_seen: iso(NOW - 100),
    ...more,
  }) as Host;
const situation = (more: Partial<Situation>): Situation => ({
  endangered: [],
  links: [],
  shares: new Map(),
  day: undefined,
  hosts: [],
  now: NOW,
  ...more,
});
const whys = (more: Partial<Situation>): string[] => concernsOf(situation(more)).map(({ name, why }) => `${name}: ${why}`);

describe("concernsOf", () => {
  it("is nothing when all is well", () => {
    expect(whys({ links: [link("L")], shares: new Map([["L", 0.9]]), hosts: [host("h")] })).toEqual([]);
  });

  it("names promises, broken ones first, and what they were", () => {
    const one = {
      id: "t",
      label: null,
      source: "h1",
      destination: "h2",
      project: null,
      state: "ACTIVE",
      priority: 0,
      promised_finish: iso(NOW + 60),
      finish: iso(NOW + 60),
    };
    const found = concernsOf(
      situation({
        endangered: [
          { ...one, promise: "at_risk", why: "behind", detail: "it is behind" },
          { ...one, promise: "broken", why: "booked_late", detail: "it is late", finish: iso(NOW + 120) },
        ],
      }),
    );
    expect(found.map(({ tone, name }) => [tone, name])).toEqual([
      ["bad", "h1 → h2"],
      ["warn", "h1 → h2"],
    ]);
    expect(found[0]?.why).toMatch(/^Broken: it is late; promised for .*, now /);
    expect(found[1]?.why).toMatch(/^At risk: it is behind; promised for [^,]*$/);
  });

  it("says why a link is closed, and when a full one has room", () => {
    const window = { id: "w", begin: iso(NOW - 60), end: iso(NOW + 60), bps: 0, kind: "maintenance", reason: "new card" };
    const links = [link("closed", { windows: [window] }), link("full"), link("nic", { host: "h" })];
    const shares = new Map([
      ["closed", null],
      ["full", 1],
      ["nic", 1],
    ]);
    const day = { begin: iso(NOW + SPAN_S), end: iso(NOW + 3 * SPAN_S), steps: 2, links: [{ id: "full", shares: [1, 1] }] };
    const [closed, full, ...rest] = whys({ links, shares, day });
    expect(closed).toMatch(/^A → B: Closed: maintenance, new card, until /);
    expect(full).toBe("A → B: Full, with no room within a day");
    expect(rest).toEqual([]); // a busy interface is no concern
    expect(whys({ links, shares: new Map([["full", 1]]), day: { ...day, links: [{ id: "full", shares: [1, 0.2] }] } })[0]).toMatch(
      /Full until about /,
    );
  });

  it("names hosts that are silent, late, adrift, or without a good clock", () => {
    const clock = { good: false, reason: "not synchronised" } as Host["clock"];
    const hosts = [
      host("h1", { state: "down", last_seen: null }),
      host("h2", { state: "late" }),
      host("h3", { fetched_revision: 2 }),
      host("h4", { clock }),
    ];
    expect(whys({ hosts })).toEqual([
      "h1: Its agent is silent, never seen",
      expect.stringMatching(/^h2: Its agent is late, last seen 1.min ago$/),
      "h3: Drift: its agent does not do what is booked",
      "h4: Its clock is not good enough: not synchronised",
    ]);
  });
});

describe("drifts", () => {
  const host = { revision: 1, fetched_revision: 1, booked_bps: 1000, applied_bps: 995 };
  it("by more than a hundredth, or by an older plan", () => {
    expect(drifts(host)).toBe(false);
    expect(drifts({ ...host, applied_bps: 900 })).toBe(true);
    expect(drifts({ ...host, booked_bps: 0 })).toBe(true);
    expect(drifts({ ...host, revision: 2 })).toBe(true);
    expect(drifts({ ...host, fetched_revision: null })).toBe(false);
  });
});

describe("lasting", () => {
  it("shows drift only when it stays", () => {
    const since = new Map<string, number>();
    const drift = [{ key: "drift h" }, { key: "late h" }] as Concern[];
    expect(lasting(drift, since, 0, 10)).toHaveLength(1);
    expect(lasting(drift, since, 10, 10)).toHaveLength(2);
    expect(lasting([], since, 11, 10)).toHaveLength(0);
    expect(lasting(drift, since, 12, 10)).toHaveLength(1);
  });
});

it("counts what the overview does not list", () => {
  const promises = { live: { kept: 1, at_risk: 30, broken: 5 }, day: { kept: 0, broken: 0 }, endangered: [] };
  expect(unlisted(promises)).toEqual({ number: 35, to: "/transfers?promise=at_risk&promise=broken&state=RESERVED&state=ACTIVE" });
});
