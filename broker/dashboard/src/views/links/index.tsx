// SPDX-License-Identifier: Apache-2.0
// Every link: how much of it is booked, now and in the next hours, and when less of it may be used.
import { useMemo } from "react";
import { to } from "../../addresses";
import { url } from "../../api/client";
import type { Link as NetworkLink, Window } from "../../api/types";
import { useQuery } from "../../api/use";
import { seconds } from "../../format/time";
import { rate } from "../../format/units";
import { useNow } from "../../format/use-now";
import { Answer, Choice, type Column, Link, Meter, Rate, SearchField, Table, Tag, Time, View } from "../../ui";
import { descends, sorted, sortName } from "../../ui/sorting";
import { oneOf, text, useUrlState } from "../../url-state";
import "./links.css";
import { KINDS, type Load, matching, type Row, rowsOf } from "./rows";
import { Sparkline } from "./sparkline";

const SORTS = ["name", "id", "capacity", "now", "peak", "window"].flatMap((name) => [name, `-${name}`]);
const STATE = { search: text(), kind: oneOf(KINDS, "network"), sort: oneOf(SORTS, "-peak") };
const KIND_OPTIONS = [
  { value: "network", label: "Network" },
  { value: "nic", label: "Hosts' NICs" },
  { value: "all", label: "All" },
] as const;

// The broker takes an instant in the past as now.
const LOAD_NOW = url("/v1/network/load", { at: "1970-01-01T00:00:00Z" });
const LOAD_AHEAD = url("/v1/network/load", { steps: 96 });
const EVERY_MS = 60_000; // time goes on without an event

const COLUMNS: Column<Row>[] = [
  {
    key: "name",
    title: "Link",
    sort: true,
    value: (row) => row.name,
    show: (row) => <Link to={to.link(row.link.id)}>{row.name}</Link>,
  },
  {
    key: "id",
    title: "Id",
    sort: true,
    value: (row) => row.link.id,
    show: (row) => <span className="mono muted">{row.link.id}</span>,
  },
  {
    key: "capacity",
    title: "Capacity",
    sort: true,
    align: "end",
    width: "9rem",
    hint: "Without windows",
    value: (row) => row.link.capacity_bps,
    show: (row) => <Rate bps={row.link.capacity_bps} />,
  },
  {
    key: "now",
    title: "Booked now",
    sort: true,
    width: "12rem",
    hint: "Of what may be used now",
    value: (row) => row.now ?? null,
    show: (row) => <Now row={row} />,
  },
  {
    key: "peak",
    title: "Next 24 h",
    sort: true,
    width: "14rem",
    hint: "The share booked, and its peak",
    value: (row) => row.peak,
    show: (row) => <Sparkline shares={row.ahead} peak={row.peak} />,
  },
  {
    key: "window",
    title: "Next window",
    sort: true,
    width: "22rem",
    value: (row) => row.window?.begin ?? null,
    show: (row) => row.window && <NextWindow window={row.window} />,
  },
];

export default function Links() {
  const [state, setState] = useUrlState(STATE);
  const links = useQuery<NetworkLink[]>("/v1/links");
  const now = useQuery<Load>(LOAD_NOW, { everyMs: EVERY_MS });
  const ahead = useQuery<Load>(LOAD_AHEAD, { everyMs: EVERY_MS });
  const time = seconds(useNow(EVERY_MS));
  const rows = useMemo(() => {
    const found = rowsOf(matching(links.data ?? [], state.kind, state.search), now.data, ahead.data, time);
    const by = COLUMNS.find(({ key }) => key === sortName(state.sort));
    return by ? sorted(found, by.value, descends(state.sort)) : found;
  }, [links.data, state, now.data, ahead.data, time]);
  const tools = (
    <>
      <SearchField label="Search links" value={state.search} onChange={(search) => setState({ search })} />
      <Choice label="Which links" options={KIND_OPTIONS} value={state.kind} onChange={(kind) => setState({ kind })} />
    </>
  );
  return (
    <View title="Links">
      <Answer
        of={links}
        empty={(all) =>
          all.length === 0 &&
          "The network has no links yet. `bwb link import` brings a whole one, `bwb link create` makes a single one."
        }
      >
        {() => (
          <>
            <Table
              name="links"
              caption="Links"
              columns={COLUMNS}
              rows={rows}
              rowKey={(row) => row.link.id}
              sort={state.sort}
              onSort={(sort) => setState({ sort })}
              tools={tools}
            />
            {rows.length === 0 && <p className="muted">No link matches.</p>}
          </>
        )}
      </Answer>
    </View>
  );
}

function Now({ row }: { row: Row }) {
  if (row.now === undefined) return <span className="muted">…</span>;
  return row.now === null ? <Tag tone="warn">closed</Tag> : <Meter of={row.now} label={`Booked share of ${row.name}`} />;
}

function NextWindow({ window }: { window: Window }) {
  const open = seconds(window.begin) <= Date.now() / 1000;
  const what = `${window.kind}${window.bps > 0 ? `, ${rate(window.bps)} left` : ""}${window.reason ? `: ${window.reason}` : ""}`;
  return (
    <span className="row nowrap" title={what}>
      <Tag tone={open ? "warn" : "plain"}>{window.kind}</Tag>
      {open ? (
        <span>
          until <Time at={window.end} />
        </span>
      ) : (
        <Time at={window.begin} relative />
      )}
    </span>
  );
}
