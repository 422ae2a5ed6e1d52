// SPDX-License-Identifier: Apache-2.0
// The live stream of events: one connection for the page. It resumes after the last event, reports when it cannot, and invalidates
// the cache at most once a second.
import { createStore, useStore } from "../store";
import { invalidate } from "./cache";
import { reportUnauthorized } from "./client";
import { concerned } from "./concerns";
import { StreamParser } from "./sse";
import type { BrokerEvent } from "./types";

export type Liveness =
  | { is: "connecting" }
  | { is: "live" }
  | { is: "stale"; since: Date } // cut off; what is shown is as of `since`
  | { is: "down"; since: Date }; // cut off, and several attempts to come back failed

const SILENCE_MS = 25_000; // the broker says something every 10 s
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;
const ATTEMPTS_UNTIL_DOWN = 4;
const COALESCE_MS = 1_000;

const liveness = createStore<Liveness>({ is: "connecting" });
const LIVE: Liveness = { is: "live" };
const listeners = new Set<(event: BrokerEvent) => void>();

export const useLiveness = (): Liveness => useStore(liveness);

/** Every event as it comes, for a view that shows them by themselves. Queries are kept up to date without this. */
export function onEvent(listener: (event: BrokerEvent) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Listens until the returned function is called: while somebody is signed in. */
export function listen(): () => void {
  const stop = new AbortController();
  const news = new News();
  void follow(stop.signal, news);
  return () => {
    stop.abort();
    news.stop();
    liveness.set({ is: "connecting" });
  };
}

async function follow(stop: AbortSignal, news: News): Promise<void> {
  const parser = new StreamParser();
  let failures = 0;
  let heard = new Date();
  while (!stop.aborted) {
    const opened = await readOnce(stop, parser, news, () => {
      heard = new Date();
      if (failures > 0) invalidate("/v1/"); // what was kept of the time between may not be everything
      failures = 0;
      liveness.set(LIVE);
    });
    if (stop.aborted || opened === "unauthorized") return;
    failures += 1;
    const wait = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LONGEST_RETRY_MS);
    liveness.set({ is: failures > ATTEMPTS_UNTIL_DOWN ? "down" : "stale", since: heard });
    await pause(wait * (0.75 + Math.random() / 2), stop); // so that a room full of dashboards does not come back at one instant
  }
}

/** One connection, from its opening to its end. */
async function readOnce(stop: AbortSignal, parser: StreamParser, news: News, heard: () => void): Promise<"unauthorized" | "ended"> {
  const connection = new AbortController();
  parser.restart();
  const abort = (): void => connection.abort();
  stop.addEventListener("abort", abort);
  let silence = setTimeout(abort, SILENCE_MS);
  try {
    const headers = new Headers({ Accept: "text/event-stream" });
    if (parser.lastId) headers.set("Last-Event-ID", parser.lastId);
    const answer = await fetch("/v1/events", { headers, signal: connection.signal, credentials: "same-origin", cache: "no-store" });
    if (answer.status === 401) {
      reportUnauthorized();
      return "unauthorized";
    }
    if (!answer.ok || !answer.body) return "ended";
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return "ended";
      clearTimeout(silence);
      silence = setTimeout(abort, SILENCE_MS);
      heard();
      for (const message of parser.feed(value)) news.add(JSON.parse(message.data) as BrokerEvent);
    }
  } catch {
    return "ended";
  } finally {
    clearTimeout(silence);
    stop.removeEventListener("abort", abort);
  }
}

/** Gathers events so that a thousand admissions in a second are one question. */
class News {
  private gathered = new Map<string, BrokerEvent>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private flushed = 0;

  add(event: BrokerEvent): void {
    for (const listener of listeners) listener(event);
    this.gathered.set(`${event.subject_kind} ${event.subject}`, event);
    this.timer ??= setTimeout(() => this.flush(), Math.max(0, this.flushed + COALESCE_MS - performance.now()));
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private flush(): void {
    this.timer = undefined;
    this.flushed = performance.now();
    const changes = [...this.gathered.values()];
    this.gathered.clear();
    invalidate(concerned(changes), true);
  }
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      stop.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stop.addEventListener("abort", end);
  });
}
