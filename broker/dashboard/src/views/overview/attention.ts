// SPDX-License-Identifier: Apache-2.0
// What needs somebody now, the worst first: promises, links, hosts. Pure.

import { to } from "../../addresses";
import type { Host, Link, Schemas } from "../../api/types";
import { linkName, transferName } from "../../format/names";
import { relative, seconds } from "../../format/time";
import { listOf } from "./lists";
import { clock, FULL, type Load, roomFrom, type Shares } from "./load";

export interface Concern {
  key: string;
  tone: "bad" | "warn";
  name: string;
  why: string;
  to: string;
}

export interface Situation {
  endangered: readonly Schemas["Endangered"][];
  links: readonly Link[];
  shares: Shares;
  day: Load | undefined;
  hosts: readonly Host[];
  now: number;
}

export function concernsOf(situation: Situation): Concern[] {
  const found = [
    ...situation.endangered.map((one) => promise(one, situation.now)),
    ...links(situation),
    ...situation.hosts.flatMap((host) => trouble(host, situation.now)),
  ];
  return found.sort((a, b) => Number(b.tone === "bad") - Number(a.tone === "bad"));
}

function promise(one: Schemas["Endangered"], now: number): Concern {
  const [promised, finish] = [clock(seconds(one.promised_finish), now), clock(seconds(one.finish), now)];
  const times = one.finish > one.promised_finish ? `promised for ${promised}, now ${finish}` : `promised for ${promised}`;
  const broken = one.promise === "broken";
  return {
    key: `transfer ${one.id}`,
    tone: broken ? "bad" : "warn",
    name: transferName(one),
    why: `${broken ? "Broken" : "At risk"}: ${one.detail}; ${times}`,
    to: to.transfer(one.id),
  };
}

function links({ links: all, shares, day, now }: Situation): Concern[] {
  const loads = new Map(day?.links.map((link) => [link.id, link.shares]));
  return all.flatMap((link): Concern[] => {
    const share = shares.get(link.id);
    const concern = { key: `link ${link.id}`, name: linkName(link), to: to.link(link.id) };
    if (share === null) return [{ ...concern, tone: "bad", why: closed(link, now) }];
    // A transfer at the full rate of its host fills the interface of that host: nothing to look at.
    if (share === undefined || share < FULL || link.host !== null) return [];
    const spans = loads.get(link.id);
    const room = spans && roomFrom(spans, seconds(day?.begin ?? now));
    return [
      {
        ...concern,
        tone: "warn",
        why: room === undefined ? "Full, with no room within a day" : `Full until about ${clock(room, now)}`,
      },
    ];
  });
}

function closed(link: Link, now: number): string {
  const window = link.windows.find((one) => one.bps === 0 && seconds(one.begin) <= now && now < seconds(one.end));
  if (!window) return "Closed: it has no capacity";
  return `Closed: ${window.kind}${window.reason ? `, ${window.reason}` : ""}, until ${clock(seconds(window.end), now)}`;
}

function trouble(host: Host, now: number): Concern[] {
  const concern = { name: host.name, to: to.host(host.name) };
  const silent = host.last_seen ? `last seen ${relative(host.last_seen, now)}` : "never seen";
  if (host.state === "down") return [{ ...concern, key: `down ${host.name}`, tone: "bad", why: `Its agent is silent, ${silent}` }];
  if (host.state === "stopped")
    return [{ ...concern, key: `stopped ${host.name}`, tone: "bad", why: `Its agent was stopped, ${silent}` }];
  const found: Concern[] = [];
  if (host.state === "late")
    found.push({ ...concern, key: `late ${host.name}`, tone: "warn", why: `Its agent is late, ${silent}` });
  if (drifts(host))
    found.push({ ...concern, key: `drift ${host.name}`, tone: "warn", why: "Drift: its agent does not do what is booked" });
  if (host.clock && !host.clock.good)
    found.push({
      ...concern,
      key: `clock ${host.name}`,
      tone: "warn",
      why: `Its clock is not good enough${host.clock.reason ? `: ${host.clock.reason}` : ""}`,
    });
  return found;
}

const TOLERATED = 0.01;

/** It follows an older plan, or has set another rate than is booked. */
export function drifts(host: Pick<Host, "revision" | "fetched_revision" | "booked_bps" | "applied_bps">): boolean {
  const older = host.fetched_revision !== null && host.fetched_revision < host.revision;
  return older || Math.abs(host.applied_bps - host.booked_bps) > TOLERATED * Math.max(host.booked_bps, host.applied_bps);
}

/** Drift is there for a moment whenever a plan changes: only what lasts is shown. Notes in `since` when each was first seen. */
export function lasting(concerns: readonly Concern[], since: Map<string, number>, now: number, leastS: number): Concern[] {
  const present = new Set(concerns.map((concern) => concern.key));
  for (const key of since.keys()) if (!present.has(key)) since.delete(key);
  return concerns.filter(({ key }) => {
    if (!since.has(key)) since.set(key, now);
    return !key.startsWith("drift ") || now - (since.get(key) ?? now) >= leastS;
  });
}

/** Live promises at risk or broken that the overview does not list, and where they are. */
export function unlisted({ live, endangered }: Schemas["Promises"]): { number: number; to: string } {
  return { number: Math.max(0, live.at_risk + live.broken - endangered.length), to: listOf.promise(["at_risk", "broken"]) };
}
