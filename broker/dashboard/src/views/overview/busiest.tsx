// SPDX-License-Identifier: Apache-2.0
// The map in words: the links that are booked most at the instant that it shows.
import { useMemo } from "react";
import { to } from "../../addresses";
import type { Link as NetworkLink } from "../../api/types";
import { linkName } from "../../format/names";
import { Card, type Column, Link, Meter, Rate, Table, Tag } from "../../ui";
import { capacityAt, type Shares } from "./load";

interface Row {
  link: NetworkLink;
  share: number | null;
  capacity: number;
}

const MOST = 30;

const COLUMNS: Column<Row>[] = [
  {
    key: "link",
    title: "Link",
    sort: true,
    value: ({ link }) => linkName(link),
    show: ({ link }) => <Link to={to.link(link.id)}>{linkName(link)}</Link>,
  },
  { key: "id", title: "Id", sort: true, value: ({ link }) => link.id, hint: "Tells parallel links apart" },
  {
    key: "share",
    title: "Booked share",
    sort: true,
    width: "13rem",
    value: ({ share }) => share,
    show: ({ link, share }) =>
      share === null ? <Tag tone="bad">closed</Tag> : <Meter of={share} label={`${linkName(link)} booked`} />,
  },
  {
    key: "booked_bps",
    title: "Booked",
    sort: true,
    align: "end",
    value: ({ share, capacity }) => Math.round((share ?? 0) * capacity),
    show: ({ share, capacity }) => <Rate bps={(share ?? 0) * capacity} />,
  },
  {
    key: "capacity_bps",
    title: "Capacity",
    sort: true,
    align: "end",
    value: ({ capacity }) => capacity,
    show: ({ capacity }) => <Rate bps={capacity} />,
  },
];

interface BusiestProps {
  links: readonly NetworkLink[];
  shares: Shares;
  /** Seconds. */
  instant: number;
  /** "Now", or "14:15 to 14:30, in 2 h". */
  when: string;
}

export function Busiest({ links, shares, instant, when }: BusiestProps) {
  const rows = useMemo(() => busiest(links, shares, instant), [links, shares, instant]);
  return (
    <Card title={`Busiest links: ${when.charAt(0).toLowerCase()}${when.slice(1)}`}>
      <Table
        name="busiest-links"
        caption="Busiest links"
        columns={COLUMNS}
        rows={rows}
        rowKey={({ link }) => link.id}
        height="24rem"
      />
    </Card>
  );
}

export function busiest(links: readonly NetworkLink[], shares: Shares, instant: number): Row[] {
  const known = links.flatMap((link) => {
    const share = shares.get(link.id);
    return share === undefined || share === 0 ? [] : [{ link, share }];
  });
  // Closed ones first: nothing is busier than what lets nothing through.
  known.sort((a, b) => (b.share ?? 2) - (a.share ?? 2) || (a.link.id < b.link.id ? -1 : 1));
  return known.slice(0, MOST).map((row) => ({ ...row, capacity: capacityAt(row.link, instant) }));
}
