// SPDX-License-Identifier: Apache-2.0
// What happened to a host, and who did it.
import { url } from "../../api/client";
import { usePages } from "../../api/pages";
import type { BrokerEvent } from "../../api/types";
import { actionName } from "../../format/names";
import { Answer, type Column, Table, Time } from "../../ui";

type Entry = BrokerEvent & { actor_name?: string | null };

const COLUMNS: Column<Entry>[] = [
  { key: "at", title: "When", width: "11rem", value: (entry) => entry.at, show: (entry) => <Time at={entry.at} /> },
  { key: "action", title: "What", width: "14rem", value: (entry) => entry.action, show: (entry) => actionName(entry.action) },
  {
    key: "actor",
    title: "Who",
    width: "14rem",
    value: (entry) => entry.actor,
    show: (entry) => <span title={entry.actor}>{entry.actor_name ?? entry.actor}</span>,
  },
  { key: "change", title: "Change", value: changed },
];

export function Log({ host }: { host: string }) {
  const entries = usePages<Entry>(url("/v1/audit-log", { subject: host, limit: 100 }));
  return (
    <Answer of={entries} empty={(found) => found.length === 0 && "Nothing is recorded of this host."}>
      {(rows) => (
        <Table
          name={`log of ${host}`}
          caption={`Log of ${host}`}
          columns={COLUMNS}
          rows={rows}
          rowKey={(entry) => entry.id}
          more={entries.more}
          onMore={entries.loadMore}
          all={entries.all}
          height="24rem"
        />
      )}
    </Answer>
  );
}

function changed({ before, after }: Entry): string {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names]
    .map((name) =>
      before && name in before ? `${name}: ${said(before[name])} → ${said(after?.[name])}` : `${name}: ${said(after?.[name])}`,
    )
    .join(", ");
}

function said(value: unknown): string {
  if (value === null || value === undefined) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
