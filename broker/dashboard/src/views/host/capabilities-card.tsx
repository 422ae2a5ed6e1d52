// SPDX-License-Identifier: Apache-2.0
// The capabilities of a host, and the reason for each that is missing.
import type { Host } from "../../api/types";
import { Card, Empty, Facts, Tag } from "../../ui";
import { type Capabilities, capabilitiesOf, type Mechanism, preferred } from "../hosts/capabilities";
import "./host.css";

const MEANING: Record<string, string> = {
  pacing: "The kernel gives every packet its time",
  window: "No more is under way than rate × round trip",
  userland: "The agent writes little at a time",
  fq: "As pacing, carried out by the qdisc fq",
  htb: "A class of the qdisc HTB for each transfer",
};

export function CapabilitiesCard({ host }: { host: Host }) {
  const said = capabilitiesOf(host);
  return (
    <Card title="What it can do">
      {said.mechanisms.length === 0 ? (
        <Empty title="It has not said">Its agent says which mechanisms it can use when it first reports.</Empty>
      ) : (
        <Mechanisms said={said} />
      )}
      <Facts
        items={[
          ["Modes", said.modes.join(", ") || null],
          ["Start signals", said.signals && (said.signals.direct ? "from agent to agent" : "by the broker only")],
          ["Kernel", said.kernel],
          ["Processors", said.cpus],
          ["Congestion control", said.congestionControl.join(", ") || null],
        ]}
      />
    </Card>
  );
}

function Mechanisms({ said }: { said: Capabilities }) {
  const first = preferred(said);
  return (
    <table className="plain-table">
      <caption className="unseen">Mechanisms</caption>
      <thead>
        <tr>
          <th scope="col">Mechanism</th>
          <th scope="col">Here</th>
          <th scope="col">Why</th>
        </tr>
      </thead>
      <tbody>
        {said.mechanisms.map((one) => (
          <tr key={one.name}>
            <th scope="row" title={MEANING[one.name]}>
              {one.name}
            </th>
            <td>
              {one.available ? <Tag tone="good">{one === first ? "Used" : "Can be used"}</Tag> : <Tag tone="idle">Not here</Tag>}
            </td>
            <td className="muted">{why(one, one === first)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function why({ available, reason, name }: Mechanism, first: boolean): string {
  if (!available) return reason;
  return first ? "the first of what the host prefers" : `where a request asks for ${name}`;
}
