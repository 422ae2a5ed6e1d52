// SPDX-License-Identifier: Apache-2.0
// The bookings of one link, as the broker answers them and as flat arrays: a day of a busy link has 1e5 segments.
import type { Schemas, Transfer } from "../../api/types";

/** What people know a transfer by. */
export type Holder = Pick<Transfer, "id" | "label" | "project" | "source" | "destination"> & { state: string };

/** GET /v1/links/{id}/bookings: the transfers with the largest volume, and all others together. Times: microseconds since 1970. */
export type BookingsDocument = Schemas["LinkBookings"];

/**
 * Segment i: holders[owner[i]] has rate[i] from begin[i] to end[i], in seconds since 1970. The index holders.length is the rest.
 */
export interface Bookings {
  readonly holders: readonly Holder[];
  /** How many transfers the rest is. */
  readonly rest: number;
  readonly owner: Int32Array;
  readonly begin: Float64Array;
  readonly end: Float64Array;
  readonly rate: Float64Array;
}

export function bookingsOf({ transfers, rest }: Pick<BookingsDocument, "transfers" | "rest">): Bookings {
  const parts = [...transfers.map(({ segments }) => segments), rest.segments];
  const count = parts.reduce((sum, segments) => sum + segments.length, 0);
  const owner = new Int32Array(count);
  const begin = new Float64Array(count);
  const end = new Float64Array(count);
  const rate = new Float64Array(count);
  let i = 0;
  parts.forEach((segments, holder) => {
    for (const segment of segments) {
      owner[i] = holder;
      begin[i] = segment[0]! / 1e6;
      end[i] = segment[1]! / 1e6;
      rate[i] = segment[2]!;
      i += 1;
    }
  });
  return { holders: transfers, rest: rest.transfers, owner, begin, end, rate };
}

export interface Held {
  /** Undefined: the rest. */
  holder: Holder | undefined;
  bps: number;
}

/** Who holds something at an instant, the most first. What several paths of one transfer carry at once adds up. */
export function heldAt({ holders, owner, begin, end, rate }: Bookings, time: number): Held[] {
  const held = new Map<number, number>();
  for (let i = 0; i < owner.length; i += 1) {
    if (begin[i]! <= time && time < end[i]!) held.set(owner[i]!, (held.get(owner[i]!) ?? 0) + rate[i]!);
  }
  return [...held].map(([holder, bps]) => ({ holder: holders[holder], bps })).sort((a, b) => b.bps - a.bps);
}

export interface Stay {
  holder: Holder;
  /** Of what lies in the range that was asked about, in seconds since 1970. */
  begin: number;
  end: number;
  highestBps: number;
  bytes: number;
}

/** For every transfer that is named and has something booked in the range: from when to when, how much at once and in all. */
export function stays({ holders, owner, begin, end, rate }: Bookings, [from, to]: readonly [number, number]): Stay[] {
  const found = new Map<number, Stay>();
  for (let i = 0; i < owner.length; i += 1) {
    const holder = holders[owner[i]!];
    const [first, last] = [Math.max(begin[i]!, from), Math.min(end[i]!, to)];
    if (!holder || first >= last) continue;
    const bytes = (rate[i]! * (last - first)) / 8;
    const stay = found.get(owner[i]!);
    if (!stay) {
      found.set(owner[i]!, { holder, begin: first, end: last, highestBps: rate[i]!, bytes });
    } else {
      stay.begin = Math.min(stay.begin, first);
      stay.end = Math.max(stay.end, last);
      stay.highestBps = Math.max(stay.highestBps, rate[i]!);
      stay.bytes += bytes;
    }
  }
  return [...found.values()].sort((a, b) => a.begin - b.begin);
}
