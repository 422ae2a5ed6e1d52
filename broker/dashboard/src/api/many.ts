// SPDX-License-Identifier: Apache-2.0
// Several queries of one kind at once, such as the calendars of all links of a path: cached and live like those of useQuery.
import { useCallback, useRef, useSyncExternalStore } from "react";
import { reload, type Snapshot, snapshotOf, watch } from "./cache";
import type { Problem } from "./problem";

export interface Queries<T> {
  /** In the order of the paths, once every answer is there. Of broken ones, the one before. */
  readonly data: readonly T[] | undefined;
  /** Of the first that failed. */
  readonly problem: Problem | undefined;
  readonly loading: boolean;
  readonly reload: () => void;
}

export function useQueries<T>(paths: readonly string[]): Queries<T> {
  const key = paths.join("\n");
  const subscribe = useCallback(
    (listener: () => void) => {
      const stops = separate(key).map((path) => watch(path, listener));
      return () => {
        for (const stop of stops) stop();
      };
    },
    [key],
  );
  // The same array while nothing has changed, as useSyncExternalStore wants it.
  const last = useRef<{ snapshots: readonly Snapshot[]; answer: Omit<Queries<T>, "reload"> }>({ snapshots: [], answer: NONE });
  const answer = useSyncExternalStore(subscribe, () => {
    const snapshots = separate(key).map(snapshotOf);
    const before = last.current.snapshots;
    if (snapshots.length !== before.length || snapshots.some((one, index) => one !== before[index]))
      last.current = { snapshots, answer: together<T>(snapshots) };
    return last.current.answer;
  });
  const again = useCallback(() => separate(key).forEach(reload), [key]);
  return { ...answer, reload: again };
}

const NONE = { data: undefined, problem: undefined, loading: false };

function separate(key: string): string[] {
  return key === "" ? [] : key.split("\n");
}

function together<T>(snapshots: readonly Snapshot[]): Omit<Queries<T>, "reload"> {
  return {
    data:
      snapshots.length > 0 && snapshots.every((one) => one.data !== undefined) ? snapshots.map((one) => one.data as T) : undefined,
    problem: snapshots.find((one) => one.problem)?.problem,
    loading: snapshots.some((one) => one.loading),
  };
}
