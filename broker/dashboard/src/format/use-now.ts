// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "react";

/** The time, anew this often: for "in 5 min" and the line of now. */
export function useNow(everyMs = 1_000): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
