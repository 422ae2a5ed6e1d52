// SPDX-License-Identifier: Apache-2.0
// Which way it goes, link by link, and the rates that are booked on it.
import { useMemo } from "react";
import type { Plan, Segment } from "../../api/types";
import { Card, type Column, Empty, Rate, Table, Time } from "../../ui";
import { LinkName } from "./link-names";

const keyOf = ({ begin, path }: Segment): string => `${begin} ${path.join(" ")}`;

export function Paths({ plan }: { plan: Plan }) {
  const columns = useMemo(() => columnsOf(plan.paths), [plan.paths]);
  if (plan.segments.length === 0) {
    return (
      <Card title="Path">
        <Empty title="Nothing is booked">It takes no path now.</Empty>
      </Card>
    );
  }
  return (
    <Card title={plan.paths.length === 1 ? "Path" : "Paths"}>
      {plan.paths.map((path, index) => (
        <ol key={path.join(" ")} className="transfer-path" aria-label={plan.paths.length === 1 ? "Path" : `Path ${index + 1}`}>
          {path.map((link) => (
            <li key={link}>
              <LinkName id={link} />
            </li>
          ))}
        </ol>
      ))}
      <Table name="booked-rates" caption="Booked rates" columns={columns} rows={plan.segments} rowKey={keyOf} height="16rem" />
    </Card>
  );
}

function columnsOf(paths: readonly (readonly string[])[]): Column<Segment>[] {
  const numberOf = (path: readonly string[]): number => paths.findIndex((one) => one.join(" ") === path.join(" ")) + 1;
  const columns: Column<Segment>[] = [
    { key: "begin", title: "From", value: (s) => s.begin, show: (s) => <Time at={s.begin} /> },
    { key: "end", title: "To", value: (s) => s.end, show: (s) => <Time at={s.end} /> },
    { key: "rate_bps", title: "Rate", align: "end", value: (s) => s.rate_bps, show: (s) => <Rate bps={s.rate_bps} /> },
  ];
  return paths.length > 1 ? [...columns, { key: "path", title: "Path", value: (s) => numberOf(s.path) }] : columns;
}
