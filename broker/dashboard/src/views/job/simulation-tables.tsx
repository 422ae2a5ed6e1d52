// SPDX-License-Identifier: Apache-2.0
// The result of one simulation as tables: by planner, by rate limit, by link, and why requests were refused.
import { useMemo } from "react";
import { to } from "../../addresses";
import type { Link as NetworkLink } from "../../api/types";
import { useQuery } from "../../api/use";
import { linkName } from "../../format/names";
import { plannerTitle } from "../../format/planners";
import { Card, type Column, Duration, Link, Rate, Share, Table } from "../../ui";
import { FigureOf } from "./figure-of";
import { SIMULATED } from "./measures";
import type { PlannerResult } from "./result";

const PLANNER: Column<{ planner: string }> = {
  key: "planner",
  title: "Planner",
  sort: true,
  width: "12rem",
  value: (row) => row.planner,
  show: (row) => plannerTitle(row.planner),
};

const FIGURES: Column<PlannerResult>[] = [
  PLANNER,
  ...SIMULATED.map(
    (measure): Column<PlannerResult> => ({
      key: measure.key,
      title: measure.title,
      hint: measure.hint,
      sort: true,
      align: "end",
      value: measure.of,
      show: (row) => <FigureOf measure={measure} value={measure.of(row)} />,
    }),
  ),
];

export function ByPlanner({ planners }: { planners: readonly PlannerResult[] }) {
  return <Table name="simulation" caption="Results by planner" columns={FIGURES} rows={planners} rowKey={(row) => row.planner} />;
}

type RateRow = PlannerResult["classes"][number] & { planner: string };

const RATES: Column<RateRow>[] = [
  PLANNER,
  {
    key: "rate_max_bps",
    title: "At most",
    sort: true,
    align: "end",
    value: (row) => row.rate_max_bps,
    show: (row) => (row.rate_max_bps === null ? "any rate" : <Rate bps={row.rate_max_bps} />),
  },
  { key: "requests", title: "Requests", align: "end", value: (row) => row.requests },
  { key: "admitted", title: "Admitted", align: "end", value: (row) => row.admitted },
  {
    key: "normalized_delay_s",
    title: "Delay",
    sort: true,
    align: "end",
    value: (row) => row.normalized_delay_s,
    show: (row) => <Duration s={row.normalized_delay_s} />,
  },
];

export function ByRate({ planners }: { planners: readonly PlannerResult[] }) {
  const rows = useMemo(() => planners.flatMap(({ planner, classes }) => classes.map((one) => ({ ...one, planner }))), [planners]);
  if (planners.every((planner) => planner.classes.length < 2)) return null;
  return (
    <Card title="By rate limit">
      <Table
        name="simulation-rates"
        caption="Results by rate limit"
        columns={RATES}
        rows={rows}
        rowKey={(row) => `${row.planner} ${row.rate_max_bps}`}
        height="20rem"
      />
    </Card>
  );
}

type LinkRow = PlannerResult["links"][number] & { planner: string; name: string };

const LINKS: Column<LinkRow>[] = [
  PLANNER,
  {
    key: "link",
    title: "Link",
    sort: true,
    value: (row) => row.link,
    show: (row) => (
      <Link to={to.link(row.link)} title={row.link}>
        {row.name}
      </Link>
    ),
  },
  {
    key: "mean",
    title: "Mean",
    hint: "Booked share while requests arrive",
    sort: true,
    align: "end",
    width: "9rem",
    value: (row) => row.mean,
    show: (row) => <Share of={row.mean} />,
  },
  {
    key: "peak",
    title: "Peak",
    hint: "Largest booked share",
    sort: true,
    align: "end",
    width: "9rem",
    value: (row) => row.peak,
    show: (row) => <Share of={row.peak} />,
  },
];

export function ByLink({ planners }: { planners: readonly PlannerResult[] }) {
  const network = useQuery<NetworkLink[]>("/v1/links");
  const rows = useMemo(() => {
    const names = new Map((network.data ?? []).map((link) => [link.id, linkName(link)]));
    return planners.flatMap(({ planner, links }) =>
      links.map((one) => ({ ...one, planner, name: names.get(one.link) ?? one.link })),
    );
  }, [planners, network.data]);
  if (rows.length === 0) return null;
  return (
    <Card title="By link">
      <Table
        name="simulation-links"
        caption="Results by link"
        columns={LINKS}
        rows={rows}
        rowKey={(row) => `${row.planner} ${row.link}`}
        sort="-mean"
        height="24rem"
      />
    </Card>
  );
}

interface RefusalRow {
  planner: string;
  reason: string;
  number: number;
}

const REASONS: Column<RefusalRow>[] = [
  PLANNER,
  { key: "reason", title: "Reason", value: (row) => row.reason, show: (row) => row.reason.replaceAll("_", " ") },
  { key: "number", title: "Requests", sort: true, align: "end", width: "10rem", value: (row) => row.number },
];

export function Refusals({ planners }: { planners: readonly PlannerResult[] }) {
  const rows = planners.flatMap(({ planner, refusals }) =>
    Object.entries(refusals).map(([reason, number]) => ({ planner, reason, number })),
  );
  if (rows.length === 0) return null;
  return (
    <Card title="Refused">
      <Table
        name="simulation-refusals"
        caption="Refusals"
        columns={REASONS}
        rows={rows}
        rowKey={(row) => `${row.planner} ${row.reason}`}
        height="20rem"
      />
    </Card>
  );
}
