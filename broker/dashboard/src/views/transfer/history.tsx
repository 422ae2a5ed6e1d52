// SPDX-License-Identifier: Apache-2.0
// What happened to it: every event as a sentence, what each changed on demand, and the plans it has had.
import { useMemo } from "react";
import { at, url } from "../../api/client";
import type { BrokerEvent } from "../../api/types";
import { useQuery } from "../../api/use";
import { Answer, Card, type Column, Table, Time } from "../../ui";
import { actorName, changes, happened, type Revision, revisions } from "./story";

const MOST = 1_000;

export function History({ id }: { id: string }) {
  const events = useQuery<BrokerEvent[]>(url(at`/v1/transfers/${id}/events`, { limit: MOST }));
  return (
    <div className="columns transfer-half">
      <Card title="What happened">
        <Answer of={events} empty={(all) => all.length === 0 && "Nothing has happened yet."}>
          {(all) => (
            <ol className="timeline">
              {all.map((event) => (
                <Happening key={event.id} event={event} />
              ))}
            </ol>
          )}
        </Answer>
      </Card>
      <Card title="Plans it has had">
        <Answer of={events}>{(all) => <Plans events={all} />}</Answer>
      </Card>
    </div>
  );
}

function Happening({ event }: { event: BrokerEvent }) {
  const changed = changes(event.before, event.after);
  return (
    <li>
      <div className="row apart">
        <strong>{happened(event)}</strong>
        <Time at={event.at} />
      </div>
      <div className="muted">by {actorName(event)}</div>
      {changed.length > 0 && (
        <details>
          <summary>{changed.length === 1 ? "One change" : `${changed.length} changes`}</summary>
          <table className="timeline-changes">
            <thead>
              <tr>
                <th scope="col">What</th>
                <th scope="col">Before</th>
                <th scope="col">After</th>
              </tr>
            </thead>
            <tbody>
              {changed.map(({ field, before, after }) => (
                <tr key={field}>
                  <th scope="row">{field}</th>
                  <td>{before}</td>
                  <td>{after}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
    </li>
  );
}

const COLUMNS: readonly Column<Revision>[] = [
  { key: "revision", title: "Plan", width: "4rem", value: (r) => r.revision },
  { key: "at", title: "Since", value: (r) => r.at, show: (r) => <Time at={r.at} /> },
  { key: "why", title: "Why", value: (r) => r.why, show: (r) => <span title={`${r.why}, by ${r.who}`}>{r.why}</span> },
  { key: "start", title: "Begins", value: (r) => r.start, show: (r) => <Time at={r.start} /> },
  { key: "finish", title: "Finishes", value: (r) => r.finish, show: (r) => <Time at={r.finish} /> },
];

function Plans({ events }: { events: readonly BrokerEvent[] }) {
  const rows = useMemo(() => revisions(events), [events]);
  return <Table name="plans" caption="Plans" columns={COLUMNS} rows={rows} rowKey={(r) => String(r.revision)} height="20rem" />;
}
