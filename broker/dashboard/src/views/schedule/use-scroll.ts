// SPDX-License-Identifier: Apache-2.0
// How far the lines are scrolled. When others appear or go, the one at the top stays where it is.
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Line } from "./rows";

export const keyOf = (line: Line): string => (line.is === "row" ? line.row.key : line.header.key);

export function useScroll(box: RefObject<HTMLElement | null>, lines: readonly Line[], rowPx: number): number {
  const [scroll, setScroll] = useState(0);
  const before = useRef({ lines, rowPx });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = (): void => setScroll(element.scrollTop);
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, [box]);
  useLayoutEffect(() => {
    const old = before.current;
    before.current = { lines, rowPx };
    const element = box.current;
    if (!element || (old.lines === lines && old.rowPx === rowPx)) return;
    const top = kept(old.lines, lines, element.scrollTop / old.rowPx) * rowPx;
    if (Math.abs(top - element.scrollTop) >= 1) element.scrollTop = top;
    setScroll(element.scrollTop);
  }, [box, lines, rowPx]);
  return scroll;
}

/** Where (in lines, with a fraction) what was at `top` is now: of what is gone, the first behind it that is still there. */
export function kept(before: readonly Line[], after: readonly Line[], top: number): number {
  const index = Math.floor(top);
  if (index <= 0) return top;
  const places = new Map(after.map((line, place) => [keyOf(line), place]));
  for (let old = index; old < before.length; old += 1) {
    const place = places.get(keyOf(before[old]!));
    if (place !== undefined) return old === index ? place + (top - index) : place;
  }
  return top;
}
