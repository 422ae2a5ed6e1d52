// SPDX-License-Identifier: Apache-2.0
// Every transfer with something booked on the link in the range that is shown.
import { useMemo } from "react";
import { to } from "../../addresses";
import { transferName } from "../../format/names";
import { iso } from "../../format/time";
import type { Range } from "../../plot/steps";
import { type Column, Empty, Link, Notice, Rate, Table, Tag, Time, Volume } from "../../ui";
import { type Stay, stays } from "./bookings";
import { othersName } from "./layers";
import type { Known } from "./use-picture";

const COLUMNS: Column<Stay>[] = [
  {
    key: "name",
    title: "Transfer",
    sort: true,
    value: ({ holder }) => transferName(holder),
    show: ({ holder }) => <Link to={to.transfer(holder.id)}>{transferName(holder)}</Link>,
  },
  { key: "project", title: "Project", sort: true, width: "9rem", value: ({ holder }) => holder.project },
  {
    key: "state",
    title: "State",
    sort: true,
    width: "8rem",
    value: ({ holder }) => holder.state,
    show: ({ holder }) => <Tag of={holder.state} />,
  },
  {
    key: "begin",
    title: "From",
    sort: true,
    width: "13rem",
    value: ({ begin }) => iso(begin),
    show: ({ begin }) => <Time at={begin} />,
  },
  { key: "end", title: "To", sort: true, width: "13rem", value: ({ end }) => iso(end), show: ({ end }) => <Time at={end} /> },
  {
    key: "highest_bps",
    title: "At most",
    sort: true,
    align: "end",
    width: "8rem",
    value: (stay) => stay.highestBps,
    show: (stay) => <Rate bps={stay.highestBps} />,
  },
  {
    key: "bytes",
    title: "Volume",
    sort: true,
    align: "end",
    width: "8rem",
    hint: "Within the range",
    value: ({ bytes }) => Math.round(bytes),
    show: ({ bytes }) => <Volume bytes={Math.round(bytes)} />,
  },
];

export function TransfersTable({ known: { bookings }, range, link }: { known: Known; range: Range; link: string }) {
  const rows = useMemo(() => stays(bookings, range), [bookings, range]);
  if (rows.length === 0) return <Empty>Nothing is booked on this link in the range that is shown.</Empty>;
  return (
    <>
      {bookings.rest > 0 && (
        <Notice tone="idle">{othersName(bookings.rest)} with less volume are not in this list. A shorter range names more.</Notice>
      )}
      <Table
        name={`transfers-on-${link}`}
        caption="Transfers on this link"
        columns={COLUMNS}
        rows={rows}
        rowKey={({ holder }) => holder.id}
        sort="-bytes"
        height="30rem"
      />
    </>
  );
}
