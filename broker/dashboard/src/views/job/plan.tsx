// SPDX-License-Identifier: Apache-2.0
// What a re-optimisation would change: before and after, who gains and who loses, and the button that books it.
import { useMemo } from "react";
import { useMay } from "../../api/session";
import type { Job } from "../../api/types";
import { Card, type Column, Notice, Table, Time } from "../../ui";
import { counted } from "../jobs/words";
import { ApplyPlan } from "./apply-plan";
import { gainOf } from "./changes";
import { DifferenceOf, FigureOf } from "./figure-of";
import { type Measure, PLANNED } from "./measures";
import { PlanChanges } from "./plan-changes";
import type { PlanMetrics, PlanResult } from "./result";

export function Plan({ job }: { job: Job }) {
  const may = useMay();
  const result = job.result as unknown as PlanResult;
  const gains = useMemo(() => result.changes.map(gainOf), [result.changes]);
  return (
    <>
      {result.note && <Notice tone="idle">{sentence(result.note)}</Notice>}
      {result.applied && (
        <Notice tone="good">
          Applied
          {result.applied_at && (
            <>
              {" "}
              at <Time at={result.applied_at} />
            </>
          )}
          : {counted(result.changes_total, "transfer")} moved.
        </Notice>
      )}
      {result.changes_total > 0 &&
        !result.applied &&
        (may("operate") ? (
          <ApplyPlan job={job} result={result} gains={gains} />
        ) : (
          <Notice tone="idle">It has not been applied. That takes the scope operate.</Notice>
        ))}
      <BeforeAfter result={result} />
      {result.changes_total > 0 && <PlanChanges gains={gains} total={result.changes_total} />}
      <Kept result={result} />
    </>
  );
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

interface Row {
  measure: Measure<PlanMetrics>;
  before: number | null;
  after: number | null;
}

const COLUMNS: Column<Row>[] = [
  {
    key: "measure",
    title: "Figure",
    value: (row) => row.measure.key,
    show: (row) => <span title={row.measure.hint}>{row.measure.title}</span>,
  },
  {
    key: "before",
    title: "Before",
    align: "end",
    value: (row) => row.before,
    show: (row) => <FigureOf measure={row.measure} value={row.before} />,
  },
  {
    key: "after",
    title: "After",
    align: "end",
    value: (row) => row.after,
    show: (row) => <FigureOf measure={row.measure} value={row.after} />,
  },
  {
    key: "difference",
    title: "Difference",
    align: "end",
    value: (row) => (row.before === null || row.after === null ? null : row.after - row.before),
    show: (row) => <DifferenceOf measure={row.measure} before={row.before} after={row.after} />,
  },
];

function BeforeAfter({ result }: { result: PlanResult }) {
  const rows = PLANNED.map((measure): Row => ({ measure, before: measure.of(result.before), after: measure.of(result.after) }));
  return (
    <Card title={`Before and after, of ${counted(result.considered, "transfer")} that may move`}>
      <Table name="before-after" caption="Before and after" columns={COLUMNS} rows={rows} rowKey={(row) => row.measure.key} />
    </Card>
  );
}

interface KeptRow {
  reason: string;
  number: number;
}

const KEPT: Column<KeptRow>[] = [
  { key: "reason", title: "Why they stay as they are", value: (row) => row.reason },
  { key: "number", title: "Transfers", align: "end", width: "10rem", sort: true, value: (row) => row.number },
];

function Kept({ result }: { result: PlanResult }) {
  const rows = Object.entries(result.kept).map(([reason, number]) => ({ reason, number }));
  if (rows.length === 0) return null;
  return (
    <Card title="Left as they are">
      <Table
        name="kept"
        caption="Transfers left as they are"
        columns={KEPT}
        rows={rows}
        rowKey={(row) => row.reason}
        height="16rem"
      />
    </Card>
  );
}
