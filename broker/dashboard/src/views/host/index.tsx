// SPDX-License-Identifier: Apache-2.0
// One transfer host: how it is, what it can do and why, what it carries, and what is booked on it.

import { to, type ViewProps } from "../../addresses";
import { at } from "../../api/client";
import { useMay } from "../../api/session";
import type { Host } from "../../api/types";
import { useQuery } from "../../api/use";
import { Answer, Card, Facts, Link, Notice, Rate, TabPanel, Tabs, Time, View } from "../../ui";
import { oneOf, useUrlState } from "../../url-state";
import { findingsOf } from "../hosts/findings";
import { StateTags } from "../hosts/state-tags";
import { Actions } from "./actions";
import { CapabilitiesCard } from "./capabilities-card";
import { ClockCard } from "./clock-card";
import { Log } from "./log";
import { Plan } from "./plan";
import { Transfers } from "./transfers";

const STATE = { show: oneOf(["plan", "transfers", "log"], "plan") };
const MEASURED_MS = 5_000; // rates and signs of life come without an event

export default function HostView({ params }: ViewProps<"id">) {
  const [{ show }, set] = useUrlState(STATE);
  const host = useQuery<Host>(at`/v1/hosts/${params.id}`, { everyMs: MEASURED_MS });
  const may = useMay();
  const tabs = [
    { key: "plan", title: "Plan" },
    { key: "transfers", title: "Transfers", ...(host.data && { count: host.data.transfers }) },
    ...(may("operate") ? ([{ key: "log", title: "Log" }] as const) : []),
  ] as const;
  return (
    <View
      title={params.id}
      lead={host.data && <StateTags host={host.data} />}
      actions={host.data && may("operate") && <Actions host={host.data} />}
    >
      <Answer of={host}>
        {(found) => (
          <div className="stack">
            {findingsOf(found).map(({ tone, text }) => (
              <Notice key={text} tone={tone}>
                {text}
              </Notice>
            ))}
            <Summary host={found} />
            <div className="columns">
              <CapabilitiesCard host={found} />
              <ClockCard clock={found.clock} />
            </div>
          </div>
        )}
      </Answer>
      {host.data && (
        <Card>
          <Tabs label="Of this host" tabs={tabs} value={show} onChange={(next) => set({ show: next })} />
          <TabPanel of="plan" value={show}>
            <Plan host={params.id} />
          </TabPanel>
          <TabPanel of="transfers" value={show}>
            <Transfers host={params.id} />
          </TabPanel>
          <TabPanel of="log" value={show}>
            <Log host={params.id} />
          </TabPanel>
        </Card>
      )}
    </View>
  );
}

function Summary({ host }: { host: Host }) {
  const follows =
    host.fetched_revision === null
      ? "none yet"
      : host.fetched_revision < host.revision
        ? `${host.fetched_revision} of ${host.revision}`
        : `${host.revision}, the newest`;
  return (
    <Card>
      <Facts
        items={[
          ["Node", host.node],
          ["NIC", <Rate bps={host.nic_bps} />],
          ["Out and in", <NicLinks host={host} />],
          ["Data address", `${host.data_address}${host.tls ? " (TLS)" : ", not encrypted"}`],
          ["Agent", host.agent_version ?? "version not said"],
          ["Last seen", <Time at={host.last_seen} relative />],
          ["Sends now", <Rate bps={host.sending_bps} />],
          ["Booked to send now", <Rate bps={host.booked_bps} />],
          ["Set on the host", <Rate bps={host.applied_bps} />],
          ["Receives now", <Rate bps={host.receiving_bps} />],
          ["Plan that it follows", follows],
          ["Joined", <Time at={host.enrolled} />],
        ]}
      />
    </Card>
  );
}

function NicLinks({ host: { name, node } }: { host: Host }) {
  return (
    <>
      <Link to={to.link(`${name}~up`)}>to {node}</Link>, <Link to={to.link(`${name}~down`)}>from {node}</Link>
    </>
  );
}
