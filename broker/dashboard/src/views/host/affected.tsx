// SPDX-License-Identifier: Apache-2.0
// The live transfers that use a host, shown before it is drained or removed.

import { to } from "../../addresses";
import { url } from "../../api/client";
import type { Page, Transfer } from "../../api/types";
import { useQuery } from "../../api/use";
import { transferName } from "../../format/names";
import { seconds } from "../../format/time";
import { Answer, Link, Tag, Time } from "../../ui";

const NAMED = 8;

interface Live extends Page<Transfer> {
  total?: number;
}

/** Null asks nothing. */
export const useLive = (host: string | null) =>
  useQuery<Live>(
    host === null
      ? null
      : url("/v1/transfers", { node: host, state: ["HELD", "RESERVED", "ACTIVE"], sort: "-finish", count: true, limit: NAMED }),
  );

interface AffectedProps {
  live: ReturnType<typeof useLive>;
  none: string;
  /** What becomes of them. */
  some: (count: number) => string;
}

export function Affected({ live, none, some }: AffectedProps) {
  return (
    <Answer of={live}>
      {({ items, total = items.length }) =>
        total === 0 ? (
          <p>{none}</p>
        ) : (
          <>
            <p>{some(total)}</p>
            <ul className="plain-list">
              {items.map((one) => (
                <li key={one.id}>
                  <Link to={to.transfer(one.id)}>{transferName(one)}</Link> <Tag of={one.state} /> ends{" "}
                  <Time at={one.plan.finish} />
                </li>
              ))}
            </ul>
            {total > items.length && <p className="muted">and {total - items.length} more</p>}
          </>
        )
      }
    </Answer>
  );
}

/** When the last of them ends, by plan. They come with the latest first. */
export function lastEnd({ items }: Live): number | undefined {
  const finish = items[0]?.plan.finish;
  return finish ? seconds(finish) : undefined;
}
