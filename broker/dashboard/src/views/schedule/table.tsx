// SPDX-License-Identifier: Apache-2.0
// The schedule as text: the same rows as in the picture, for readers of the screen and for export.
import { useMemo } from "react";
import { to } from "../../addresses";
import { duration, iso } from "../../format/time";
import { type Column, Link, Rate, Table, Time, Volume } from "../../ui";
import { type Line, type Row, wholeOf } from "./rows";
import { StateTag } from "./tip";

interface Entry {
  row: Row;
  group: string;
}

const begin = ({ row }: Entry): number => wholeOf(row)[0];
const end = ({ row }: Entry): number => wholeOf(row)[1];

const COLUMNS: Column<Entry>[] = [
  {
    key: "transfer",
    title: "Transfer",
    sort: true,
    value: ({ row }) => row.name,
    show: ({ row }) => <Link to={to.transfer(row.id)}>{row.name}</Link>,
  },
  {
    key: "state",
    title: "State",
    width: "8.5rem",
    sort: true,
    value: ({ row }) => row.state,
    show: ({ row }) => <StateTag state={row.state} />,
  },
  { key: "source", title: "From", width: "9rem", sort: true, value: ({ row }) => row.transfer.source },
  { key: "destination", title: "To", width: "9rem", sort: true, value: ({ row }) => row.transfer.destination },
  {
    key: "begin",
    title: "Begins",
    width: "11.5rem",
    sort: true,
    value: (entry) => iso(begin(entry)),
    show: (entry) => <Time at={begin(entry)} />,
  },
  {
    key: "end",
    title: "Ends",
    width: "11.5rem",
    sort: true,
    value: (entry) => iso(end(entry)),
    show: (entry) => <Time at={end(entry)} />,
  },
  {
    key: "lasts_s",
    title: "Lasts",
    width: "7rem",
    align: "end",
    sort: true,
    value: (entry) => end(entry) - begin(entry),
    show: (entry) => duration(end(entry) - begin(entry)),
  },
  {
    key: "peak_bps",
    title: "Largest rate",
    width: "9rem",
    align: "end",
    sort: true,
    value: ({ row }) => row.peak,
    show: ({ row }) => <Rate bps={row.peak} />,
  },
  {
    key: "steps",
    title: "Steps",
    width: "5rem",
    align: "end",
    sort: true,
    hint: "How often the booked rate changes",
    value: ({ row }) => row.begins.length,
  },
  {
    key: "volume_bytes",
    title: "Volume",
    width: "7rem",
    align: "end",
    sort: true,
    value: ({ row }) => row.transfer.volume_bytes,
    show: ({ row }) => <Volume bytes={row.transfer.volume_bytes} />,
  },
];
const GROUP: Column<Entry> = { key: "group", title: "Group", sort: true, value: ({ group }) => group };

export function ScheduleTable({ lines }: { lines: readonly Line[] }) {
  const entries = useMemo(() => entriesOf(lines), [lines]);
  const columns = lines[0]?.is === "header" ? [GROUP, ...COLUMNS] : COLUMNS;
  return <Table name="schedule" caption="Booked transfers" columns={columns} rows={entries} rowKey={({ row }) => row.key} />;
}

function entriesOf(lines: readonly Line[]): Entry[] {
  const entries: Entry[] = [];
  let group = "";
  for (const line of lines) {
    if (line.is === "header") group = line.header.name;
    else entries.push({ row: line.row, group });
  }
  return entries;
}
