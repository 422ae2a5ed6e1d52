// SPDX-License-Identifier: Apache-2.0
// The address bar as state: History API, links that a middle click opens in a new tab, and nothing more.
import type { AnchorHTMLAttributes, MouseEvent, ReactNode } from "react";
import { useSyncExternalStore } from "react";

const MOVED = "bwb:moved";

export interface Location {
  path: string;
  /** With its leading "?", or empty. */
  search: string;
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("popstate", listener);
  window.addEventListener(MOVED, listener);
  return () => {
    window.removeEventListener("popstate", listener);
    window.removeEventListener(MOVED, listener);
  };
}

export const usePath = (): string => useSyncExternalStore(subscribe, () => window.location.pathname);
export const useSearch = (): string => useSyncExternalStore(subscribe, () => window.location.search);

/** Go to a path of this page, with or without a query. `replace` leaves no step behind for the back button. */
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  if (to === window.location.pathname + window.location.search) return;
  if (options.replace) window.history.replaceState(null, "", to);
  else window.history.pushState(null, "", to);
  window.dispatchEvent(new Event(MOVED));
}

/** A path of this page that somebody else wrote, such as `?next=`: nothing that leaves it. */
export function ownPath(given: string | null): string {
  return given !== null && /^\/(?![/\\])/.test(given) ? given : "/";
}

interface LinkProps extends AnchorHTMLAttributes<HTMLAnchorElement> {
  to: string;
  children: ReactNode;
}

export function Link({ to, onClick, ...rest }: LinkProps) {
  const go = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !plain || rest.target) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={to} onClick={go} {...rest} />;
}
