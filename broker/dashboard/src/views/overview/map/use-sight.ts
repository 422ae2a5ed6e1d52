// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from "react";
import { read, type Sight, written } from "./camera";
import type { Box } from "./plane";

const REST_MS = 300; // browsers throttle pages that write the address at each notch of a wheel

/** The visible part of the map, written to the URL when a gesture ends. */
export function useSight(
  text: string,
  onText: (text: string) => void,
  box: Box,
): [Sight, (change: (sight: Sight) => Sight) => void] {
  const [sight, setSight] = useState(() => read(text, box));
  const latest = useRef({ text, onText });
  useEffect(() => {
    latest.current = { text, onText };
  });
  const own = useRef(text);
  useEffect(() => {
    if (text !== own.current) setSight(read(text, box)); // somebody else wrote it: the back button, a link
    own.current = text;
  }, [text, box]);
  useEffect(() => {
    const timer = setTimeout(() => {
      const now = written(sight);
      if (now === latest.current.text) return;
      own.current = now;
      latest.current.onText(now);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [sight]);
  return [sight, setSight];
}
