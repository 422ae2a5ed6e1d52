// SPDX-License-Identifier: Apache-2.0
// Hooks for views: useQuery fetches what they show, useAction does what a button asks for. Lists with a cursor: pages.ts.
import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { NOTHING, reload, type Snapshot, snapshotOf, watch } from "./cache";
import { asProblem, type Problem } from "./problem";

export { invalidate } from "./cache";

export interface Query<T> extends Snapshot<T> {
  /** `data` belongs to the question before: the answer to this one is on its way (only with `keep`). */
  readonly outdated: boolean;
  readonly reload: () => void;
}

export interface QueryOptions {
  /** While a new URL loads, go on showing the answer to the one before: for filters, ranges and sliders. */
  keep?: boolean;
  /** Ask again this often while the page is visible: for measured values, which come without an event. */
  everyMs?: number;
}

/** The answer of `GET path`, kept up to date by the stream of events. `null` asks nothing. */
export function useQuery<T>(path: string | null, options: QueryOptions = {}): Query<T> {
  const subscribe = useCallback((listener: () => void) => (path === null ? () => {} : watch(path, listener)), [path]);
  const snapshot = useSyncExternalStore(subscribe, () => (path === null ? IDLE : snapshotOf(path))) as Snapshot<T>;
  const before = useRef<T | undefined>(undefined);
  useEffect(() => {
    if (snapshot.data !== undefined) before.current = snapshot.data;
  }, [snapshot.data]);
  useEvery(path, options.everyMs);
  const again = useCallback(() => path !== null && reload(path), [path]);
  const outdated = options.keep === true && path !== null && snapshot.data === undefined && before.current !== undefined;
  return { ...snapshot, data: outdated ? before.current : snapshot.data, outdated, reload: again };
}

const IDLE: Snapshot<never> = { ...NOTHING, loading: false };

function useEvery(path: string | null, everyMs: number | undefined): void {
  useEffect(() => {
    if (path === null || everyMs === undefined) return;
    const timer = setInterval(() => {
      if (!document.hidden && !snapshotOf(path).loading) reload(path);
    }, everyMs);
    return () => clearInterval(timer);
  }, [path, everyMs]);
}

export interface Action<A extends unknown[], R> {
  /** Resolves to the answer, or to undefined when it was refused: then `problem` says why. */
  run: (...given: A) => Promise<R | undefined>;
  busy: boolean;
  problem: Problem | undefined;
  reset: () => void;
}

/** Something that changes the broker. A second run while the first is on its way does nothing: a double click books once. */
export function useAction<A extends unknown[], R>(act: (...given: A) => Promise<R>): Action<A, R> {
  const [state, setState] = useState<{ busy: boolean; problem: Problem | undefined }>({ busy: false, problem: undefined });
  const latest = useRef(act);
  useEffect(() => {
    latest.current = act;
  });
  const busy = useRef(false);
  const run = useCallback(async (...given: A) => {
    if (busy.current) return undefined;
    busy.current = true;
    setState({ busy: true, problem: undefined });
    try {
      const answer = await latest.current(...given);
      setState({ busy: false, problem: undefined });
      return answer;
    } catch (reason) {
      setState({ busy: false, problem: asProblem(reason) });
      return undefined;
    } finally {
      busy.current = false;
    }
  }, []);
  const reset = useCallback(() => setState({ busy: false, problem: undefined }), []);
  return { run, ...state, reset };
}
