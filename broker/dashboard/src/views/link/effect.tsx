// SPDX-License-Identifier: Apache-2.0
// What a change of a link does to promises: in a preview what would become of each transfer, afterwards what became of it.

import { to } from "../../addresses";
import type { Outcome, Schemas } from "../../api/types";
import { shortId } from "../../format/names";
import { seconds } from "../../format/time";
import { type Column, Duration, Link, Notice, Table, Tag, Time } from "../../ui";

export type Settled = Pick<Schemas["LinkChange"], "replanned" | "broken" | "outcomes" | "preview">;

// Reasons are sentences. A list of so many rows may have rows of several lines; longer ones scroll by the height of a row.
const FEW = 100;

export function Effect({ of }: { of: Settled }) {
  const { replanned, broken, outcomes, preview } = of;
  if (replanned.length === 0) {
    return <Notice tone="good">{preview ? "No transfer would lose its place." : "No transfer lost its place."}</Notice>;
  }
  const verb = preview ? "would lose" : "lost";
  const promises =
    broken.length === 0
      ? "All of them keep their promise."
      : `${counted(broken.length, "promise")} ${preview ? "would be" : broken.length === 1 ? "is" : "are"} broken.`;
  return (
    <>
      <Notice tone={broken.length > 0 ? "bad" : "warn"}>
        {counted(replanned.length, "transfer")} {verb} {replanned.length === 1 ? "its" : "their"} place. {promises}
      </Notice>
      <div className={outcomes.length <= FEW ? "effect" : undefined}>
        <Table
          name="outcomes"
          caption={preview ? "What would become of each transfer" : "What became of each transfer"}
          columns={COLUMNS}
          rows={outcomes}
          rowKey={({ id }) => id}
          height="18rem"
        />
      </div>
      {outcomes.length < replanned.length && <p className="muted">Only the first {outcomes.length} are listed.</p>}
    </>
  );
}

const nameOf = ({ id, label }: Outcome): string => label ?? `Transfer ${shortId(id)}`;

const laterOf = ({ promised_finish, finish, broken }: Outcome): number | null =>
  broken && promised_finish && finish ? seconds(finish) - seconds(promised_finish) : null;

const COLUMNS: Column<Outcome>[] = [
  {
    key: "name",
    title: "Transfer",
    width: "15rem",
    value: nameOf,
    show: (outcome) => <Link to={to.transfer(outcome.id)}>{nameOf(outcome)}</Link>,
  },
  {
    key: "promise",
    title: "Promise",
    width: "7rem",
    value: ({ broken }) => (broken ? "broken" : "kept"),
    show: ({ broken }) => <Tag tone={broken ? "bad" : "good"}>{broken ? "broken" : "kept"}</Tag>,
  },
  {
    key: "promised_finish",
    title: "Promised",
    width: "12rem",
    value: (outcome) => outcome.promised_finish,
    show: (outcome) => <Time at={outcome.promised_finish} />,
  },
  {
    key: "finish",
    title: "New finish",
    width: "12rem",
    value: ({ finish }) => finish,
    show: ({ finish }) => (finish ? <Time at={finish} /> : <Tag tone="bad">no room</Tag>),
  },
  {
    key: "later_s",
    title: "Later by",
    width: "7rem",
    align: "end",
    value: laterOf,
    show: (outcome) => <Duration s={laterOf(outcome)} />,
  },
  { key: "reason", title: "Why", value: ({ reason }) => reason?.detail ?? null },
];

/** counted(2, "promise") -> "2 promises" */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
