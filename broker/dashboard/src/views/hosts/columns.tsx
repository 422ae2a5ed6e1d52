// SPDX-License-Identifier: Apache-2.0
// The columns of the list of hosts.

import { to } from "../../addresses";
import type { Host } from "../../api/types";
import { type Column, Link, Rate, Tag, Time } from "../../ui";
import { capabilitiesOf, preferred } from "./capabilities";
import { drift, findingsOf } from "./findings";
import { StateTags } from "./state-tags";
import { clockOf } from "./words";

export const COLUMNS: Column<Host>[] = [
  {
    key: "name",
    title: "Host",
    sort: true,
    value: (host) => host.name,
    show: (host) => <Link to={to.host(host.name)}>{host.name}</Link>,
  },
  {
    key: "state",
    title: "State",
    sort: true,
    width: "11rem",
    value: (host) => (host.drained ? `${host.state}, drained` : host.state),
    show: (host) => <StateTags host={host} />,
  },
  { key: "node", title: "Node", sort: true, value: (host) => host.node },
  { key: "version", title: "Agent", sort: true, width: "6rem", value: (host) => host.agent_version },
  {
    key: "mechanism",
    title: "Mechanism",
    sort: true,
    width: "9rem",
    hint: "What holds transfers to their rates where the request leaves it open",
    value: mechanism,
    show: (host) => <MechanismCell host={host} />,
  },
  {
    key: "clock",
    title: "Clock",
    sort: true,
    hint: "Offset to the broker's clock, and how far that may be off",
    value: (host) => host.clock?.offset_us ?? null,
    show: (host) => <ClockCell host={host} />,
  },
  {
    key: "drift",
    title: "Plan",
    sort: true,
    hint: "Does the host do what is booked?",
    value: (host) => drift(host)[0]?.word ?? "as booked",
    show: (host) => <DriftCell host={host} />,
  },
  {
    key: "transfers",
    title: "Live",
    sort: true,
    align: "end",
    width: "5rem",
    hint: "Live transfers from and to it",
    value: (host) => host.transfers,
  },
  {
    key: "sending_bps",
    title: "Sends",
    sort: true,
    align: "end",
    width: "8rem",
    hint: "Measured in the last seconds",
    value: (host) => host.sending_bps,
    show: (host) => <Rate bps={host.sending_bps} />,
  },
  {
    key: "receiving_bps",
    title: "Receives",
    sort: true,
    align: "end",
    width: "8rem",
    hint: "Measured in the last seconds",
    value: (host) => host.receiving_bps,
    show: (host) => <Rate bps={host.receiving_bps} />,
  },
  {
    key: "last_seen",
    title: "Last seen",
    sort: true,
    width: "8rem",
    value: (host) => host.last_seen,
    show: (host) => <Time at={host.last_seen} relative />,
  },
];

/** Before the name: whom to look at first. */
export const trouble = (host: Host): number =>
  findingsOf(host).reduce((sum, { tone }) => sum + { bad: 100, warn: 10, idle: 1 }[tone], 0);

function mechanism(host: Host): string | null {
  const said = capabilitiesOf(host);
  if (said.mechanisms.length === 0) return null;
  return preferred(said)?.name ?? "none";
}

function MechanismCell({ host }: { host: Host }) {
  const { mechanisms } = capabilitiesOf(host);
  const missing = mechanisms.filter((one) => !one.available);
  const why = missing.map(({ name, reason }) => `${name}: ${reason}`).join("\n");
  const name = mechanism(host);
  if (name === null) return <span className="muted">not said</span>;
  return (
    <span title={why ? `Not here:\n${why}` : "All mechanisms can be used"}>
      {name === "none" ? <Tag tone="bad">none</Tag> : name}
    </span>
  );
}

function ClockCell({ host: { clock } }: { host: Host }) {
  if (!clock) return <span className="muted">not said</span>;
  if (clock.good) return <span title="Good enough for starts by the clock alone">{clockOf(clock)}</span>;
  return (
    <Tag tone="warn" title={clock.reason ?? undefined}>
      {clockOf(clock)}
    </Tag>
  );
}

function DriftCell({ host }: { host: Host }) {
  const [found] = drift(host);
  if (!found) return <span className="muted">as booked</span>;
  return (
    <Tag tone={found.tone} title={found.text}>
      {found.word}
    </Tag>
  );
}
