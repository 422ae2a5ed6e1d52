// SPDX-License-Identifier: Apache-2.0

import { to } from "../../addresses";
import type { Transfer } from "../../api/types";
import { transferName } from "../../format/names";
import { type Column, Link, Tag, Volume } from "../../ui";
import { Finish, finishOf } from "./finish";
import { PlanMeter } from "./plan-meter";
import { progress } from "./progress";
import { PromiseKept } from "./promise";
import { reasonDetail, reasonWords } from "./reasons";

export const COLUMNS: readonly Column<Transfer>[] = [
  {
    key: "label",
    title: "Name",
    sort: true,
    value: transferName,
    show: (t) => (
      <Link to={to.transfer(t.id)} title={transferName(t)}>
        {transferName(t)}
      </Link>
    ),
  },
  {
    key: "state",
    title: "State",
    sort: true,
    width: "8rem",
    value: (t) => (t.paused ? "PAUSED" : t.state),
    show: (t) => (t.paused ? <Tag tone="warn">Paused</Tag> : <Tag of={t.state} />),
  },
  {
    key: "route",
    title: "From → to",
    sort: "source",
    value: (t) => `${t.source} → ${t.destination}`,
    show: (t) => <span title={`${t.source} → ${t.destination}`}>{`${t.source} → ${t.destination}`}</span>,
  },
  { key: "project", title: "Project", sort: true, width: "6.5rem", value: (t) => t.project },
  {
    key: "volume",
    title: "Volume",
    sort: true,
    align: "end",
    width: "6rem",
    value: (t) => t.volume_bytes,
    show: (t) => <Volume bytes={t.volume_bytes} />,
  },
  {
    key: "progress",
    title: "Progress",
    width: "10rem",
    hint: "Filled: what has arrived. The mark: what the plan has carried by now. Striped: only booked, nobody counts its bytes",
    value: (t) => progress(t).done ?? progress(t).planned,
    show: (t) => <PlanMeter of={progress(t)} />,
  },
  {
    key: "finish",
    title: "Finish",
    sort: true,
    width: "14rem",
    hint: "Ended, or expected; ± half of the range that eight in ten such transfers end in",
    value: finishOf,
    show: (t) => <Finish of={t} />,
  },
  {
    key: "promised_finish",
    title: "Promise",
    sort: true,
    width: "12rem",
    hint: "How the promised finish stands, and how far the expected one is from it",
    value: (t) => t.promised_finish,
    show: (t) => <PromiseKept of={t} />,
  },
  {
    key: "waiting_reason",
    title: "Why it waits",
    value: (t) => t.waiting_reason && reasonWords(t.waiting_reason),
    show: (t) =>
      t.waiting_reason && (
        <span title={reasonDetail(t.waiting_reason) ?? reasonWords(t.waiting_reason)}>{reasonWords(t.waiting_reason)}</span>
      ),
  },
];
