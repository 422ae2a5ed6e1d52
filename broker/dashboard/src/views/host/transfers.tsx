// SPDX-License-Identifier: Apache-2.0
// The transfers of a host, the live ones first: what is booked for each now, what its agent has set, and what was measured.

import { to } from "../../addresses";
import { url } from "../../api/client";
import { usePages } from "../../api/pages";
import type { Transfer } from "../../api/types";
import { transferName } from "../../format/names";
import { seconds } from "../../format/time";
import { Answer, CheckField, type Column, Link, Progress, Rate, Table, Tag, Time } from "../../ui";
import { flag, useUrlState } from "../../url-state";

const STATE = { ended: flag() };
const LIVE = ["HELD", "RESERVED", "ACTIVE"];

export function Transfers({ host }: { host: string }) {
  const [{ ended }, set] = useUrlState(STATE);
  const transfers = usePages<Transfer>(
    url("/v1/transfers", { node: host, state: ended ? [] : LIVE, outlook: true, limit: 200, sort: ended ? "-start" : "start" }),
  );
  return (
    <>
      <CheckField label="With those that have ended" checked={ended} onChange={(next) => set({ ended: next })} />
      <Answer
        of={transfers}
        empty={(rows) => rows.length === 0 && (ended ? "No transfer has used this host." : "No live transfer uses this host.")}
      >
        {(rows) => (
          <Table
            name={`transfers of ${host}`}
            caption={`Transfers of ${host}`}
            columns={columnsOf(host)}
            rows={rows}
            rowKey={(one) => one.id}
            more={transfers.more}
            onMore={transfers.loadMore}
            all={transfers.all}
            height="26rem"
          />
        )}
      </Answer>
    </>
  );
}

function columnsOf(host: string): Column<Transfer>[] {
  const way = (one: Transfer): string => (one.source === host ? `to ${one.destination}` : `from ${one.source}`);
  return [
    {
      key: "transfer",
      title: "Transfer",
      value: transferName,
      show: (one) => <Link to={to.transfer(one.id)}>{transferName(one)}</Link>,
    },
    { key: "way", title: "Way", width: "12rem", value: way },
    {
      key: "state",
      title: "State",
      width: "8.5rem",
      value: (one) => (one.paused ? "PAUSED" : one.state),
      show: (one) => (one.paused ? <Tag tone="warn">Paused</Tag> : <Tag of={one.state} />),
    },
    {
      key: "booked_bps",
      title: "Booked now",
      align: "end",
      width: "8.5rem",
      value: (one) => bookedAt(one),
      show: (one) => <Rate bps={bookedAt(one)} />,
    },
    {
      key: "applied_bps",
      title: "Set on sender",
      align: "end",
      width: "9.5rem",
      hint: "What the sender's agent says it has set",
      value: (one) => one.outlook?.applied_bps ?? null,
      show: (one) => <Rate bps={one.outlook?.applied_bps} />,
    },
    {
      key: "measured_bps",
      title: "Measured",
      align: "end",
      width: "8rem",
      value: (one) => one.measured_bps,
      show: (one) => <Rate bps={one.measured_bps} />,
    },
    {
      key: "done",
      title: "Done",
      width: "9rem",
      value: (one) => one.bytes_done,
      show: (one) =>
        one.mode === "reserve" ? (
          <span className="muted">not counted</span>
        ) : (
          <Progress value={one.bytes_done} max={one.volume_bytes ?? 0} label={transferName(one)} />
        ),
    },
    {
      key: "finish",
      title: "Ends",
      width: "11.5rem",
      value: (one) => one.actual_finish ?? one.plan.finish,
      show: (one) => <Time at={one.actual_finish ?? one.plan.finish} />,
    },
  ];
}

/** The rate that its plan has at an instant; null where it is not under way, or ends by itself. */
function bookedAt({ plan, state }: Transfer, now = Date.now() / 1000): number | null {
  if (!LIVE.includes(state)) return null;
  return plan.segments.reduce(
    (sum, { begin, end, rate_bps }) => sum + (seconds(begin) <= now && now < seconds(end) ? rate_bps : 0),
    0,
  );
}
