// SPDX-License-Identifier: Apache-2.0
// The picture in words: every step of the calendar, for readers of the screen, and to be taken along as CSV or JSON.
import { useMemo } from "react";
import { transferName } from "../../format/names";
import { seconds } from "../../format/time";
import type { Range } from "../../plot/steps";
import { type Column, Notice, Rate, Share, Table, Time } from "../../ui";
import { heldAt } from "./bookings";
import { othersName } from "./layers";
import { valueAt } from "./moment";
import type { Known } from "./use-picture";

interface Row {
  begin: string;
  end: string;
  capacity: number;
  booked: number;
  measured: number | null;
}

const MOST_NAMES = 3;

export function CalendarTable({ known, range, link }: { known: Known; range: Range; link: string }) {
  const { calendar, bookings } = known;
  const rows = useMemo(() => rowsOf(known, range), [known, range]);
  const columns = useMemo((): Column<Row>[] => {
    const names = (row: Row): string => {
      const held = heldAt(bookings, Math.max(seconds(row.begin), range[0]));
      const first = held.slice(0, MOST_NAMES).map(({ holder }) => (holder ? transferName(holder) : othersName(bookings.rest)));
      return first.join(", ") + (held.length > MOST_NAMES ? ` and ${held.length - MOST_NAMES} more` : "");
    };
    return [
      { key: "begin", title: "From", width: "13rem", value: (row) => row.begin, show: (row) => <Time at={row.begin} /> },
      { key: "end", title: "To", width: "13rem", value: (row) => row.end, show: (row) => <Time at={row.end} /> },
      {
        key: "capacity_bps",
        title: "Capacity",
        align: "end",
        width: "8rem",
        value: (row) => row.capacity,
        show: (row) => <Rate bps={row.capacity} />,
      },
      {
        key: "booked_bps",
        title: "Booked",
        align: "end",
        width: "8rem",
        value: (row) => row.booked,
        show: (row) => <Rate bps={row.booked} />,
      },
      {
        key: "share",
        title: "Share",
        align: "end",
        width: "6rem",
        value: (row) => shareOf(row),
        show: (row) => <Share of={shareOf(row)} />,
      },
      {
        key: "measured_bps",
        title: "Measured",
        align: "end",
        width: "8rem",
        value: (row) => row.measured,
        show: (row) => <Rate bps={row.measured} />,
      },
      {
        key: "transfers",
        title: "Transfers, the largest first",
        value: names,
        show: (row) => <span title={names(row)}>{names(row) || "–"}</span>,
      },
    ];
  }, [bookings, range]);
  return (
    <>
      {calendar.decimated && (
        <Notice tone="idle">
          There are more changes than this table has rows: it keeps the peaks. Zoom in to see each of them.
        </Notice>
      )}
      <Table
        name={`calendar-${link}`}
        caption="Capacity, booked and measured rate"
        columns={columns}
        rows={rows}
        rowKey={(row) => row.begin}
        height="30rem"
      />
    </>
  );
}

function rowsOf({ calendar: { steps, end }, measured }: Known, [from, to]: Range): Row[] {
  const rows = steps.map((step, index): Row => {
    const begin = seconds(step.begin);
    return {
      begin: step.begin,
      end: steps[index + 1]?.begin ?? end,
      capacity: step.capacity_bps,
      booked: step.booked_bps,
      measured: valueAt(measured, Math.max(begin, from)),
    };
  });
  return rows.filter((row) => seconds(row.end) > from && seconds(row.begin) < to);
}

const shareOf = ({ booked, capacity }: Row): number | null => (capacity > 0 ? booked / capacity : null);
