// SPDX-License-Identifier: Apache-2.0
// The visible range of time: from the URL, from a gesture under way, or following the clock.
import { useCallback, useEffect, useRef, useState } from "react";
import { useNow } from "../../format/use-now";
import type { Range } from "../../plot/gestures";
import { following, limited } from "./range";

interface Written {
  /** Seconds since 1970; null goes with the time. */
  from: number | null;
  /** Seconds. */
  span: number;
}

export interface Shown {
  /** At this moment, in the middle of a drag too. */
  range: Range;
  /** The one to ask the broker for: it rests while a hand moves the other. */
  settled: Range;
  now: number;
  follows: boolean;
  show: (range: Range) => void;
  /** Go with the time, and show so many seconds. */
  follow: (span: number) => void;
}

const REST_MS = 250; // browsers refuse more than a few changes of the address a second

export function useRange({ from, span }: Written, write: (change: Written) => void): Shown {
  const now = useNow(span <= 3_600 ? 1_000 : 10_000).getTime() / 1000;
  const [moving, setMoving] = useState<Range | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const latest = useRef(write);
  latest.current = write;
  useEffect(() => () => clearTimeout(timer.current), []);

  const show = useCallback((wanted: Range) => {
    const range = limited(wanted);
    setMoving(range);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setMoving(null);
      latest.current({ from: Math.round(range[0]), span: Math.round(range[1] - range[0]) });
    }, REST_MS);
  }, []);
  const follow = useCallback((length: number) => {
    clearTimeout(timer.current);
    setMoving(null);
    latest.current({ from: null, span: length });
  }, []);
  const settled: Range = from === null ? following(now, span) : limited([from, from + span]);
  return { range: moving ?? settled, settled, now, follows: from === null && moving === null, show, follow };
}
