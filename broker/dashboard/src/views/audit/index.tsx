// SPDX-License-Identifier: Apache-2.0
// Who did what, when, and what it changed.
import { useMemo, useState } from "react";
import { usePages } from "../../api/pages";
import { useMay } from "../../api/session";
import type { BrokerEvent } from "../../api/types";
import { actionName } from "../../format/names";
import { Answer, Button, type Column, Denied, Empty, Table, Time, View } from "../../ui";
import { useUrlState } from "../../url-state";
import "./audit.css";
import { Details } from "./details";
import { changes, fieldName } from "./difference";
import { Filters } from "./filters";
import { actorName, kindName, Subject, subjectName } from "./names";
import { type AuditState, question, STATE } from "./state";
import { Value } from "./value";

export default function Audit() {
  const may = useMay();
  return <View title="Audit log">{may("operate") ? <Log /> : <Denied />}</View>;
}

const NOTHING: AuditState = { text: "", actor: "", kind: "", action: "", subject: "", from: "", to: "" };

function Log() {
  const [state, setState] = useUrlState(STATE);
  const pages = usePages<BrokerEvent>(question(state));
  const [opened, setOpened] = useState<BrokerEvent>();
  const columns = useMemo(() => columnsOf((actor) => setState({ actor }), setOpened), [setState]);
  const none = (
    <Empty title="Nothing happened that fits" action={<Button onClick={() => setState(NOTHING)}>Take all filters away</Button>}>
      The log reaches back as far as the broker keeps events.
    </Empty>
  );
  return (
    <>
      <Filters state={state} onChange={setState} known={pages.items} />
      <Answer of={pages} empty={(rows) => rows.length === 0 && none}>
        {(rows) => (
          <Table
            name="audit-log"
            caption="Events, newest first"
            columns={columns}
            rows={rows}
            rowKey={(event) => event.id}
            more={pages.more}
            onMore={pages.loadMore}
            all={pages.all}
            current={opened?.id}
          />
        )}
      </Answer>
      {opened && <Details of={opened} onClose={() => setOpened(undefined)} />}
    </>
  );
}

function columnsOf(by: (actor: string) => void, open: (event: BrokerEvent) => void): Column<BrokerEvent>[] {
  return [
    { key: "at", title: "Time", width: "11rem", value: (event) => event.at, show: (event) => <Time at={event.at} /> },
    {
      key: "actor",
      title: "By",
      width: "11rem",
      value: actorName,
      show: (event) => (
        <Button
          kind="quiet"
          className="audit-by"
          title={event.actor}
          aria-label={`By ${actorName(event)}: show only these`}
          onClick={() => by(event.actor)}
        >
          {actorName(event)}
        </Button>
      ),
    },
    {
      key: "action",
      title: "What happened",
      width: "14rem",
      value: (event) => event.action,
      show: (event) => actionName(event.action),
    },
    {
      key: "subject",
      title: "About",
      width: "7rem",
      value: (event) => event.subject,
      show: (event) => kindName(event.subject_kind),
    },
    { key: "subject_name", title: "Name", value: subjectName, show: (event) => <Subject of={event} /> },
    {
      key: "changes",
      title: "Changed",
      value: (event) => JSON.stringify({ before: event.before, after: event.after }),
      show: (event) => <Summary of={event} />,
    },
    {
      key: "id",
      title: "Details",
      width: "6.5rem",
      align: "end",
      value: (event) => event.id,
      show: (event) => (
        <Button
          kind="quiet"
          aria-label={`Details of ${actionName(event.action)}, ${subjectName(event)}`}
          onClick={() => open(event)}
        >
          Details
        </Button>
      ),
    },
  ];
}

const MOST_SHOWN = 3;

/** The first few fields of what changed; of what is new or gone the details say more than a line could. */
function Summary({ of }: { of: BrokerEvent }) {
  if (of.before === null || of.after === null)
    return <span className="muted">{of.after === null ? (of.before === null ? "" : "gone") : "new"}</span>;
  const rows = changes(of.before, of.after);
  return (
    <span className="muted">
      {rows.slice(0, MOST_SHOWN).map((row, index) => (
        <span key={row.field}>
          {index > 0 && ", "}
          {fieldName(row.field).toLowerCase()} <Value field={row.field} of={row.before} /> →{" "}
          <Value field={row.field} of={row.after} />
        </span>
      ))}
      {rows.length > MOST_SHOWN && ", …"}
    </span>
  );
}
