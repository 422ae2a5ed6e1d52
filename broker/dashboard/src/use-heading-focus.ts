// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from "react";

/**
 * After a navigation the focus is on the new view's heading, where a page load would have put it. Views come late (their chunk is
 * fetched, their data too), so the first heading that appears takes it, unless the reader has gone elsewhere meanwhile.
 */
export function useHeadingFocus(path: string, signedIn: boolean): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    window.scrollTo(0, 0);
    const left = document.activeElement;
    let observer: MutationObserver | undefined;
    const focus = (): boolean => {
      const heading = document.querySelector<HTMLElement>("main h1");
      if (!heading) return false;
      const moved = document.activeElement !== left && document.activeElement !== document.body;
      if (!moved) heading.focus({ preventScroll: true });
      return true;
    };
    if (!focus()) {
      observer = new MutationObserver(() => focus() && observer?.disconnect());
      observer.observe(document.body, { childList: true, subtree: true });
    }
    return () => observer?.disconnect();
  }, [path, signedIn]);
}
