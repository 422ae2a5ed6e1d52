// SPDX-License-Identifier: Apache-2.0
// All transfer hosts: are their agents there, and do they do what is booked?
import { type ReactNode, useMemo } from "react";
import { useMay } from "../../api/session";
import type { Host } from "../../api/types";
import { useQuery } from "../../api/use";
import { Answer, Button, Choice, Empty, Figure, Rate, SearchField, Table, View } from "../../ui";
import { flag, oneOf, text, useUrlState } from "../../url-state";
import { COLUMNS, trouble } from "./columns";
import { Enrol } from "./enrol";
import { drift } from "./findings";

const STATE = { search: text(), show: oneOf(["all", "trouble", "drained"], "all"), enrol: flag() };
const SHOWN = [
  { value: "all", label: "All" },
  { value: "trouble", label: "With trouble" },
  { value: "drained", label: "Drained" },
] as const;

const MEASURED_MS = 5_000; // rates and signs of life come without an event

export default function Hosts() {
  const [state, set] = useUrlState(STATE);
  const hosts = useQuery<Host[]>("/v1/hosts", { everyMs: MEASURED_MS });
  const may = useMay()("operate");
  const enrol = may && (
    <Button kind="primary" onClick={() => set({ enrol: true })}>
      Enrol a host
    </Button>
  );
  return (
    <View title="Hosts" actions={enrol}>
      <Answer of={hosts} empty={(all) => all.length === 0 && <NoHosts action={enrol} />}>
        {(all) => (
          <>
            <Figures hosts={all} />
            <List hosts={all} state={state} set={set} />
          </>
        )}
      </Answer>
      <Enrol open={may && state.enrol} onClose={() => set({ enrol: false })} />
    </View>
  );
}

function NoHosts({ action }: { action: ReactNode }) {
  return (
    <Empty title="No host has joined yet" action={action}>
      An enrolled host runs an agent that carries out what is booked on it. Without one, the broker books between nodes only.
    </Empty>
  );
}

function Figures({ hosts }: { hosts: readonly Host[] }) {
  const count = (is: (host: Host) => boolean): number => hosts.filter(is).length;
  const down = count((host) => host.state === "down" || host.state === "stopped");
  const late = count((host) => host.state === "late");
  const astray = count((host) => host.transfers > 0 && drift(host).length > 0);
  const sum = (of: (host: Host) => number): number => hosts.reduce((total, host) => total + of(host), 0);
  return (
    <div className="figures">
      <Figure label="Up" value={count((host) => host.state === "up")} note={`of ${hosts.length}`} tone="good" />
      <Figure label="Down" value={down} note={late > 0 ? `${late} late` : "none late"} tone={down > 0 ? "bad" : "plain"} />
      <Figure
        label="Not as booked"
        value={astray}
        tone={astray > 0 ? "warn" : "plain"}
        note="no plan, an older one, or another rate"
      />
      <Figure label="Drained" value={count((host) => host.drained)} note="take nothing new" />
      <Figure
        label="Sending"
        value={<Rate bps={sum((host) => host.sending_bps)} />}
        note={
          <>
            booked: <Rate bps={sum((host) => host.booked_bps)} />
          </>
        }
      />
    </div>
  );
}

interface ListProps {
  hosts: readonly Host[];
  state: { search: string; show: "all" | "trouble" | "drained" };
  set: (change: Partial<ListProps["state"]>) => void;
}

function List({ hosts, state: { search, show }, set }: ListProps) {
  const rows = useMemo(() => {
    const wanted = search.toLowerCase();
    const found = hosts.filter((host) =>
      [host.name, host.node, host.agent_version ?? ""].some((one) => one.toLowerCase().includes(wanted)),
    );
    const kept = found.filter((host) => show === "all" || (show === "drained" ? host.drained : trouble(host) >= 10));
    return kept.sort((one, other) => trouble(other) - trouble(one) || one.name.localeCompare(other.name, "en", { numeric: true }));
  }, [hosts, search, show]);
  const tools = (
    <>
      <SearchField label="Find a host" value={search} onChange={(given) => set({ search: given })} />
      <Choice label="Which hosts" options={SHOWN} value={show} onChange={(given) => set({ show: given })} />
    </>
  );
  return <Table name="hosts" caption="Hosts" columns={COLUMNS} rows={rows} rowKey={(host) => host.name} tools={tools} />;
}
