// SPDX-License-Identifier: Apache-2.0
// The entries of the audit log about this transfer, for those who may read it.
import { url } from "../../api/client";
import { usePages } from "../../api/pages";
import { useMay } from "../../api/session";
import type { BrokerEvent } from "../../api/types";
import { Answer, Card, type Column, Table, Time } from "../../ui";
import { actorName, changes, happened } from "./story";

const COLUMNS: readonly Column<BrokerEvent>[] = [
  { key: "at", title: "When", width: "14rem", value: (e) => e.at, show: (e) => <Time at={e.at} /> },
  { key: "actor", title: "Who", value: (e) => actorName(e), show: (e) => <span title={e.actor}>{actorName(e)}</span> },
  { key: "action", title: "What", value: (e) => happened(e) },
  { key: "changes", title: "Changed", value: inWords, show: (e) => <span title={inWords(e)}>{inWords(e)}</span> },
];

function inWords(event: BrokerEvent): string {
  return changes(event.before, event.after)
    .map(({ field, before, after }) => `${field}: ${before} → ${after}`)
    .join("; ");
}

export function Audit({ id }: { id: string }) {
  const may = useMay();
  const entries = usePages<BrokerEvent>(may("operate") ? url("/v1/audit-log", { subject: id }) : null);
  if (!may("operate")) return null;
  return (
    <Card title="Audit log">
      <Answer of={entries} empty={(all) => all.length === 0 && "The audit log has no entry about it."}>
        {(rows) => (
          <Table
            name="audit"
            caption="Audit log of this transfer"
            columns={COLUMNS}
            rows={rows}
            rowKey={(e) => e.id}
            more={entries.more}
            onMore={entries.loadMore}
            all={entries.all}
            height="20rem"
          />
        )}
      </Answer>
    </Card>
  );
}
