// SPDX-License-Identifier: Apache-2.0
// Every request to the broker goes through here. The session is a cookie that script cannot read; the header X-BWB-CSRF, which
// another site cannot send without asking first, tells the broker that a change comes from this page.
import { Problem } from "./problem";

type Value = string | number | boolean;
export type Parameters = Record<string, Value | readonly Value[] | null | undefined>;

export interface CallOptions {
  signal?: AbortSignal;
  /** The revision that was read, sent as If-Match: the broker refuses (412) when somebody else changed the thing since. */
  revision?: number;
  /** Idempotency-Key: keep it (see newKey) while the same booking is tried again, so that it is made once. */
  key?: string;
}

/**
 * url("/v1/transfers", { state: ["HELD", "ACTIVE"], search: "" }) -> "/v1/transfers?state=HELD&state=ACTIVE". Empty values are left
 * out.
 */
export function url(path: string, parameters: Parameters = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? (value as readonly Value[]) : [value as Value | null | undefined]) {
      if (one !== null && one !== undefined && one !== "") search.append(name, String(one));
    }
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

/** A path below /v1 with its parts escaped: at`/v1/links/${id}/calendar`. Ids of links and hosts may hold any character. */
export function at(parts: TemplateStringsArray, ...ids: string[]): string {
  return String.raw({ raw: parts }, ...ids.map(encodeURIComponent));
}

// Not crypto.randomUUID: that exists only on https and localhost, and a broker may well be reached by http on a closed network.
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const get = <T>(path: string, options?: CallOptions): Promise<T> => call("GET", path, undefined, options);
export const post = <T>(path: string, body?: unknown, options?: CallOptions): Promise<T> => call("POST", path, body, options);
export const patch = <T>(path: string, body: unknown, options?: CallOptions): Promise<T> => call("PATCH", path, body, options);
export const put = <T>(path: string, body: unknown, options?: CallOptions): Promise<T> => call("PUT", path, body, options);
export const del = <T>(path: string, options?: CallOptions): Promise<T> => call("DELETE", path, undefined, options);

type Listener = () => void;
const unauthorizedListeners = new Set<Listener>();

/** Called whenever the broker no longer knows this session. */
export function onUnauthorized(listener: Listener): () => void {
  unauthorizedListeners.add(listener);
  return () => unauthorizedListeners.delete(listener);
}

export function reportUnauthorized(): void {
  for (const listener of unauthorizedListeners) listener();
}

async function call<T>(method: string, path: string, body: unknown, options: CallOptions = {}): Promise<T> {
  const headers = new Headers({ Accept: "application/json" });
  if (method !== "GET") headers.set("X-BWB-CSRF", "1");
  if (body !== undefined) headers.set("Content-Type", "application/json");
  if (options.revision !== undefined) headers.set("If-Match", `"${options.revision}"`);
  if (options.key !== undefined) headers.set("Idempotency-Key", options.key);
  const answer = await send(path, {
    method,
    headers,
    credentials: "same-origin",
    cache: "no-store",
    body: body === undefined ? null : JSON.stringify(body),
    signal: options.signal ?? null,
  });
  if (!answer.ok) {
    const problem = await Problem.from(answer);
    // A refused sign-in is the sign-in form's own affair.
    if (answer.status === 401 && path !== "/v1/session") reportUnauthorized();
    throw problem;
  }
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

async function send(path: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(path, request);
  } catch (reason) {
    if (request.signal?.aborted) throw reason;
    throw Problem.unreachable(reason);
  }
}
