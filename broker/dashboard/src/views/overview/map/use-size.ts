// SPDX-License-Identifier: Apache-2.0
import { type RefObject, useEffect, useState } from "react";

export interface Size {
  width: number;
  height: number;
  /** Of its text: the measure of everything that has to be legible. */
  fontPx: number;
}

/** Of an element, in CSS pixels; undefined until it is on the page. */
export function useSize(of: RefObject<Element | null>): Size | undefined {
  const [size, setSize] = useState<Size>();
  useEffect(() => {
    const element = of.current;
    if (!element) return;
    const observer = new ResizeObserver(() => {
      setSize({
        width: element.clientWidth,
        height: element.clientHeight,
        fontPx: Number.parseFloat(getComputedStyle(element).fontSize),
      });
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [of]);
  return size;
}
