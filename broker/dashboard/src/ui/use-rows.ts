// SPDX-License-Identifier: Apache-2.0
// Virtual scrolling of a long table: only rows on the screen, and one screen around, are in the document. All have one height.
import { type RefObject, useEffect, useState } from "react";

export interface Rows {
  begin: number;
  end: number;
  rowPx: number;
}

const FEW = 120; // fewer rows than this are simply all there
const ROW_REM = 2.125; // --row

export function useRows(box: RefObject<HTMLElement | null>, count: number, onEnd: (() => void) | undefined): Rows {
  const [seen, setSeen] = useState({ begin: 0, end: FEW, rowPx: 30 });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = (): void => {
      const rowPx = ROW_REM * Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
      const screen = Math.ceil(element.clientHeight / rowPx);
      const first = Math.floor(element.scrollTop / rowPx);
      // In steps of eight rows, so that scrolling within them renders nothing.
      const begin = Math.max(0, Math.floor((first - screen) / 8) * 8);
      const end = Math.ceil((first + 2 * screen) / 8) * 8;
      setSeen((old) => (old.begin === begin && old.end === end && old.rowPx === rowPx ? old : { begin, end, rowPx }));
      if (first + 2 * screen >= count) onEnd?.();
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const resized = new ResizeObserver(look);
    resized.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      resized.disconnect();
    };
  }, [box, count, onEnd]);
  if (count <= FEW) return { begin: 0, end: count, rowPx: seen.rowPx };
  const begin = Math.min(seen.begin, Math.max(0, count - 1));
  return { begin, end: Math.min(seen.end, count), rowPx: seen.rowPx };
}
