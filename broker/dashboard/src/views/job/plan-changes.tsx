// SPDX-License-Identifier: Apache-2.0
// Transfer by transfer: how it is booked, how it would be, what it gains or loses, and how far it stays from breaking its promise.

import { to } from "../../addresses";
import { transferName } from "../../format/names";
import { duration } from "../../format/time";
import { Card, type Column, Duration, Link, Notice, Rate, Table, Tag, Time } from "../../ui";
import type { Gain } from "./changes";

export function PlanChanges({ gains, total }: { gains: readonly Gain[]; total: number }) {
  return (
    <Card title="What changes for whom">
      {total > gains.length && (
        <Notice tone="idle">
          The first {gains.length} of {total} are listed.
        </Notice>
      )}
      <Table
        name="changes"
        caption="Changes by transfer"
        columns={COLUMNS}
        rows={gains}
        rowKey={({ change }) => change.transfer_id}
        sort="gain_s"
        height="32rem"
      />
    </Card>
  );
}

function nameOf({ change: { label, source, destination } }: Gain): string {
  return source && destination ? transferName({ label, source, destination }) : (label ?? "A transfer without a name");
}

const COLUMNS: Column<Gain>[] = [
  {
    key: "transfer",
    title: "Transfer",
    sort: true,
    value: nameOf,
    show: (gain) => (
      <Link to={to.transfer(gain.change.transfer_id)} title={gain.change.transfer_id}>
        {nameOf(gain)}
      </Link>
    ),
  },
  {
    key: "gain_s",
    title: "Gain",
    hint: "How much earlier it ends",
    sort: true,
    width: "11rem",
    value: (gain) => gain.earlier,
    show: (gain) => <GainTag gain={gain} />,
  },
  {
    key: "finish_before",
    title: "Finish before",
    sort: true,
    width: "11rem",
    value: ({ change }) => change.before.finish,
    show: ({ change }) => <Time at={change.before.finish} />,
  },
  {
    key: "finish_after",
    title: "Finish after",
    sort: true,
    width: "11rem",
    value: ({ change }) => change.after.finish,
    show: ({ change }) => <Time at={change.after.finish} />,
  },
  {
    key: "slack_s",
    title: "To spare",
    hint: "Between its new finish and its promise",
    sort: true,
    align: "end",
    width: "8rem",
    value: (gain) => gain.slack,
    show: (gain) => <Duration s={gain.slack} />,
  },
  {
    key: "peak_before_bps",
    title: "Peak before",
    sort: true,
    align: "end",
    width: "8rem",
    value: ({ change }) => change.before.peak_bps,
    show: ({ change }) => <Rate bps={change.before.peak_bps} />,
  },
  {
    key: "peak_after_bps",
    title: "Peak after",
    sort: true,
    align: "end",
    width: "8rem",
    value: ({ change }) => change.after.peak_bps,
    show: ({ change }) => <Rate bps={change.after.peak_bps} />,
  },
  {
    key: "path",
    title: "Path",
    width: "8rem",
    value: (gain) => (gain.moved ? "another" : "the same"),
    show: (gain) => (
      <span title={gain.change.after.paths.map((path) => path.join(", ")).join("; ")}>{gain.moved ? "another" : "the same"}</span>
    ),
  },
];

function GainTag({ gain: { earlier } }: { gain: Gain }) {
  if (Math.abs(earlier) < 1e-3) return "as before";
  return earlier > 0 ? <Tag tone="good">{duration(earlier)} earlier</Tag> : <Tag tone="warn">{duration(-earlier)} later</Tag>;
}
