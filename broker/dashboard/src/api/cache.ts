// SPDX-License-Identifier: Apache-2.0
// The cache of the broker's answers, by URL. Components share entries; an entry is fetched again when an event concerns it, never
// twice at the same time, and dropped some time after its last reader (the page stays open all day).
import { get } from "./client";
import { asProblem, type Problem } from "./problem";

export interface Snapshot<T = unknown> {
  readonly data: T | undefined;
  /** Why the latest attempt failed. `data` may still hold what was known before. */
  readonly problem: Problem | undefined;
  readonly loading: boolean;
}

interface Entry {
  snapshot: Snapshot;
  readonly listeners: Set<() => void>;
  request: AbortController | undefined;
  timer: ReturnType<typeof setTimeout> | undefined;
  again: boolean; // something changed while the request was on its way
  freshUntil: number;
  restUntil: number; // live updates ask no earlier than this
}

export const NOTHING: Snapshot<never> = { data: undefined, problem: undefined, loading: true };

const FRESH_MS = 5_000; // a view opened again within this time shows what it had, and asks nothing
const MOST_UNWATCHED = 60;
// Live updates leave the broker three times as much rest as an answer took, so that a slow question cannot keep it busy.
const REST = 3;
const MOST_REST_MS = 15_000;

const entries = new Map<string, Entry>();
const invalidations = new Set<(concerns: (path: string) => boolean, live: boolean) => void>();

export function snapshotOf(path: string): Snapshot {
  return entries.get(path)?.snapshot ?? NOTHING;
}

export function watch(path: string, listener: () => void): () => void {
  const entry = entryOf(path);
  entry.listeners.add(listener);
  if (!entry.request && performance.now() >= entry.freshUntil) void ask(path, entry);
  return () => {
    entry.listeners.delete(listener);
    if (entry.listeners.size === 0) leave(path, entry);
  };
}

/** Ask again now, whatever is on its way. */
export function reload(path: string): void {
  const entry = entries.get(path);
  if (!entry) return;
  entry.request?.abort();
  entry.request = undefined;
  void ask(path, entry);
}

/**
 * Everything that begins with `prefix`, or that the function picks, is out of date: ask again what somebody looks at.
 * `live` changes come by the stream of events, as often as things happen, and are paced.
 */
export function invalidate(which: string | ((path: string) => boolean), live = false): void {
  const concerns = typeof which === "string" ? (path: string) => path.startsWith(which) : which;
  for (const [path, entry] of entries) {
    if (!concerns(path)) continue;
    entry.freshUntil = 0;
    if (entry.listeners.size === 0) continue;
    if (live) askPaced(path, entry);
    else reload(path);
  }
  for (const listener of invalidations) listener(concerns, live);
}

/** For what keeps more than one answer, such as the pages of a list. */
export function onInvalidate(listener: (concerns: (path: string) => boolean, live: boolean) => void): () => void {
  invalidations.add(listener);
  return () => invalidations.delete(listener);
}

/** On signing out: nothing that one person could see is left for the next. */
export function forgetEverything(): void {
  for (const [path, entry] of entries) {
    entry.request?.abort();
    clearTimeout(entry.timer);
    if (entry.listeners.size === 0) entries.delete(path);
    else Object.assign(entry, { ...blank(), listeners: entry.listeners });
  }
}

/** How long live updates rest after a question that took this long. */
export function restAfter(tookMs: number): number {
  return Math.min(REST * tookMs, MOST_REST_MS);
}

function blank(): Omit<Entry, "listeners"> {
  return { snapshot: NOTHING, request: undefined, timer: undefined, again: false, freshUntil: 0, restUntil: 0 };
}

function entryOf(path: string): Entry {
  const known = entries.get(path);
  if (known) return known;
  const entry: Entry = { ...blank(), listeners: new Set() };
  entries.set(path, entry);
  return entry;
}

function leave(path: string, entry: Entry): void {
  entry.request?.abort();
  entry.request = undefined;
  clearTimeout(entry.timer);
  // A Map keeps the order of insertion: what was left longest ago goes first.
  entries.delete(path);
  entries.set(path, entry);
  const unwatched = [...entries].filter(([, other]) => other.listeners.size === 0);
  for (const [old] of unwatched.slice(0, Math.max(0, unwatched.length - MOST_UNWATCHED))) entries.delete(old);
}

function askPaced(path: string, entry: Entry): void {
  if (entry.request) {
    entry.again = true;
    return;
  }
  clearTimeout(entry.timer);
  entry.timer = setTimeout(() => void ask(path, entry), Math.max(0, entry.restUntil - performance.now()));
}

async function ask(path: string, entry: Entry): Promise<void> {
  clearTimeout(entry.timer);
  const request = new AbortController();
  const begin = performance.now();
  entry.request = request;
  entry.again = false;
  show(entry, { ...entry.snapshot, loading: true });
  let next: Snapshot;
  try {
    next = { data: await get(path, { signal: request.signal }), problem: undefined, loading: false };
  } catch (reason) {
    next = { data: entry.snapshot.data, problem: asProblem(reason), loading: false };
  }
  if (entry.request !== request) return; // left, or asked anew
  const end = performance.now();
  entry.request = undefined;
  entry.freshUntil = next.problem ? 0 : end + FRESH_MS;
  entry.restUntil = end + restAfter(end - begin);
  show(entry, next);
  if (entry.again) askPaced(path, entry);
}

function show(entry: Entry, snapshot: Snapshot): void {
  entry.snapshot = snapshot;
  for (const listener of entry.listeners) listener();
}
