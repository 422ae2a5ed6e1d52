// SPDX-License-Identifier: Apache-2.0
// Two runs side by side: of every planner that was in both, each figure here, there, and the difference.
import { useMemo } from "react";
import { to } from "../../addresses";
import type { Job } from "../../api/types";
import { plannerTitle } from "../../format/planners";
import { type Column, Link, Notice, Table } from "../../ui";
import { jobName } from "../jobs/words";
import { DifferenceOf, FigureOf } from "./figure-of";
import { type Measure, SIMULATED } from "./measures";
import type { PlannerResult, SimulationResult } from "./result";

interface Row {
  planner: string;
  measure: Measure<PlannerResult>;
  one: number | null;
  other: number | null;
}

export function Comparison({ one, other }: { one: Job; other: Job }) {
  const rows = useMemo(() => rowsOf(resultOf(one), resultOf(other)), [one, other]);
  return (
    <>
      <p>
        This run against <Link to={to.job("simulation", other.id)}>{jobName(other)}</Link>.
      </p>
      {rows.length === 0 ? (
        <Notice tone="idle">No planner was in both runs.</Notice>
      ) : (
        <Table
          name="comparison"
          caption="This run against the other"
          columns={COLUMNS}
          rows={rows}
          rowKey={(row) => `${row.planner} ${row.measure.key}`}
        />
      )}
    </>
  );
}

const resultOf = (job: Job): SimulationResult => job.result as unknown as SimulationResult;

function rowsOf(one: SimulationResult, other: SimulationResult): Row[] {
  return one.planners.flatMap((here) => {
    const there = other.planners.find((planner) => planner.planner === here.planner);
    return there
      ? SIMULATED.map((measure) => ({ planner: here.planner, measure, one: measure.of(here), other: measure.of(there) }))
      : [];
  });
}

const COLUMNS: Column<Row>[] = [
  { key: "planner", title: "Planner", sort: true, value: (row) => row.planner, show: (row) => plannerTitle(row.planner) },
  {
    key: "measure",
    title: "Figure",
    sort: true,
    value: (row) => row.measure.key,
    show: (row) => <span title={row.measure.hint}>{row.measure.title}</span>,
  },
  {
    key: "this",
    title: "This run",
    align: "end",
    value: (row) => row.one,
    show: (row) => <FigureOf measure={row.measure} value={row.one} />,
  },
  {
    key: "other",
    title: "The other",
    align: "end",
    value: (row) => row.other,
    show: (row) => <FigureOf measure={row.measure} value={row.other} />,
  },
  {
    key: "difference",
    title: "Against it",
    align: "end",
    value: (row) => (row.one === null || row.other === null ? null : row.one - row.other),
    show: (row) => <DifferenceOf measure={row.measure} before={row.other} after={row.one} />,
  },
];
