// SPDX-License-Identifier: Apache-2.0
// A list that the broker answers page by page. Pages are added as the reader scrolls; a change asks all of them again and shows
// them at once, so that no row jumps twice.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { onInvalidate, restAfter } from "./cache";
import { get } from "./client";
import { asProblem, type Problem } from "./problem";
import type { Page } from "./types";

export interface Pages<T> {
  readonly items: readonly T[];
  /** Undefined until the first answer came, whichever question it was for. */
  readonly data: readonly T[] | undefined;
  readonly problem: Problem | undefined;
  readonly loading: boolean;
  /** What is shown belongs to the question before. */
  readonly outdated: boolean;
  /** There are rows behind the last one. */
  readonly more: boolean;
  readonly loadMore: () => void;
  readonly reload: () => void;
  /** Every row there is, for an export. */
  readonly all: () => Promise<readonly T[]>;
  /** The first page as it came, for what it says besides the items, such as a total. */
  readonly first: Page<T> | undefined;
}

const MOST_PAGES = 10_000;

interface State<T> {
  path: string | null;
  pages: Page<T>[];
  problem: Problem | undefined;
  loading: boolean;
}

/** `path` carries filters, sort and `limit`; the cursor is added here. */
export function usePages<T>(path: string | null): Pages<T> {
  const [state, setState] = useState<State<T>>({ path: null, pages: [], problem: undefined, loading: path !== null });
  const request = useRef<AbortController | undefined>(undefined);
  const shown = useRef(state);
  useEffect(() => {
    shown.current = state;
  }, [state]);

  const load = useCallback(
    async (count: number, keep: Page<T>[]): Promise<void> => {
      if (path === null) return;
      request.current?.abort();
      const controller = new AbortController();
      request.current = controller;
      setState((old) => ({ ...old, loading: true }));
      try {
        const pages = await fetchPages<T>(path, count, keep, controller.signal);
        if (!controller.signal.aborted) setState({ path, pages, problem: undefined, loading: false });
      } catch (reason) {
        if (!controller.signal.aborted) setState((old) => ({ ...old, path, problem: asProblem(reason), loading: false }));
      } finally {
        if (request.current === controller) request.current = undefined;
      }
    },
    [path],
  );

  const again = useCallback(() => load(Math.max(1, shown.current.pages.length), []), [load]);
  useEffect(() => {
    void load(1, []);
    return () => request.current?.abort();
  }, [load]);
  useLiveReload(path, request, again);

  const last = state.pages.at(-1);
  const outdated = state.path !== path;
  const loadMore = useCallback(() => {
    const { pages, path: of } = shown.current;
    if (request.current || of !== path || !pages.at(-1)?.next) return;
    void load(pages.length + 1, pages);
  }, [load, path]);
  const all = useCallback(
    async () => (path === null ? [] : (await fetchPages<T>(path, MOST_PAGES, [])).flatMap((page) => page.items)),
    [path],
  );
  const items = useMemo(() => state.pages.flatMap((page) => page.items), [state.pages]);
  return {
    items,
    data: state.pages.length > 0 ? items : undefined,
    problem: state.problem,
    loading: state.loading || outdated,
    outdated,
    more: Boolean(last?.next),
    loadMore,
    reload: again,
    all,
    first: state.pages[0],
  };
}

async function fetchPages<T>(path: string, count: number, keep: Page<T>[], signal?: AbortSignal): Promise<Page<T>[]> {
  const pages = [...keep];
  while (pages.length < count) {
    const cursor = pages.at(-1)?.next;
    if (pages.length > 0 && !cursor) break;
    const join = path.includes("?") ? "&" : "?";
    pages.push(await get<Page<T>>(cursor ? `${path}${join}cursor=${encodeURIComponent(cursor)}` : path, signal && { signal }));
  }
  return pages;
}

function useLiveReload(path: string | null, request: { current: AbortController | undefined }, again: () => Promise<void>): void {
  useEffect(() => {
    if (path === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let restUntil = 0;
    const refresh = async (): Promise<void> => {
      timer = undefined;
      // Does not interrupt a reader's request for more; tries again a little later.
      if (request.current) return later(250);
      const begin = performance.now();
      await again();
      restUntil = performance.now() + restAfter(performance.now() - begin);
    };
    const later = (ms: number): void => {
      timer ??= setTimeout(() => void refresh(), ms);
    };
    const stop = onInvalidate((concerns, live) => {
      if (concerns(path)) later(live ? Math.max(0, restUntil - performance.now()) : 0);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [path, request, again]);
}
