// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "react";
import { type Query, useQuery } from "../../api/use";
import { dayPath, type Load, nowPath, type Shares, sharesIn } from "./load";

export interface Loads {
  nowShares: Shares;
  /** At the stop of the slider. */
  shares: Shares;
  day: Load | undefined;
  query: Query<Load>;
}

const AS_TIME_MOVES_MS = 30_000; // segments begin and end without an event

/** `stop` 0 is now; the others are quarters of an hour. */
export function useLoad(stop: number, now: number): Loads {
  const present = useQuery<Load>(nowPath(now), { keep: true, everyMs: AS_TIME_MOVES_MS });
  const day = useQuery<Load>(dayPath(now), { keep: true });
  const nowShares = useMemo(() => sharesIn(present.data, 0), [present.data]);
  const later = useMemo(() => sharesIn(day.data, Math.max(0, stop - 1)), [day.data, stop]);
  return { nowShares, shares: stop === 0 ? nowShares : later, day: day.data, query: stop === 0 ? present : day };
}
