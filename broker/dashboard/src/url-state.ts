// SPDX-License-Identifier: Apache-2.0
// What a view shows, in its URL: filters, ranges and choices survive a reload and can be sent to a colleague.
import { useCallback, useMemo } from "react";
import { navigate, useSearch } from "./router";

/** How one value is written in the URL. `read` gives undefined for what cannot be read; then the default holds. */
export interface Codec<T> {
  readonly fallback: T;
  // Methods, not properties: so a codec of anything fits where one of something unknown is wanted.
  read(texts: string[]): T | undefined;
  write(value: T): string[];
}

export const text = (fallback = ""): Codec<string> => ({ fallback, read: ([first]) => first, write: (value) => [value] });

export const number = (fallback: number): Codec<number> => ({
  fallback,
  read: ([first]) => (first !== undefined && first.trim() !== "" && Number.isFinite(Number(first)) ? Number(first) : undefined),
  write: (value) => [String(value)],
});

/** A number or nothing, such as the end of a range that is open. */
export const maybe = (): Codec<number | null> => ({
  fallback: null,
  read: (texts) => number(0).read(texts),
  write: (value) => (value === null ? [] : [String(value)]),
});

export const flag = (fallback = false): Codec<boolean> => ({
  fallback,
  read: ([first]) => (first === "1" ? true : first === "0" ? false : undefined),
  write: (value) => [value ? "1" : "0"],
});

export const oneOf = <const T extends string>(choices: readonly T[], fallback: NoInfer<T>): Codec<T> => ({
  fallback,
  read: ([first]) => choices.find((choice) => choice === first),
  write: (value) => [value],
});

const NO_TEXTS: readonly string[] = [];
export const list = (): Codec<readonly string[]> => ({ fallback: NO_TEXTS, read: (texts) => texts, write: (value) => [...value] });

type Shape = Record<string, Codec<unknown>>;
export type StateOf<S> = { [K in keyof S]: S[K] extends Codec<infer T> ? T : never };

export function readState<S extends Shape>(shape: S, search: string): StateOf<S> {
  const parameters = new URLSearchParams(search);
  const entries = Object.entries(shape).map(([name, codec]) => {
    const texts = parameters.getAll(name);
    return [name, texts.length > 0 ? (codec.read(texts) ?? codec.fallback) : codec.fallback];
  });
  return Object.fromEntries(entries) as StateOf<S>;
}

/** The query with these values changed. A value that is its default is left out, and what other parts of the page wrote stays. */
export function writeState<S extends Shape>(shape: S, search: string, change: Partial<StateOf<S>>): string {
  const parameters = new URLSearchParams(search);
  for (const [name, codec] of Object.entries(shape)) {
    if (!(name in change)) continue;
    const value = change[name as keyof S];
    const texts = value === undefined ? [] : codec.write(value);
    parameters.delete(name);
    if (texts.join("\n") === codec.write(codec.fallback).join("\n")) continue;
    for (const one of texts) parameters.append(name, one);
  }
  const written = parameters.toString();
  return written ? `?${written}` : "";
}

export type SetUrlState<S> = (change: Partial<StateOf<S>>, options?: { push?: boolean }) => void;

/** `shape` must be a constant of the module. A change replaces the step in the history unless `push` asks for a new one. */
export function useUrlState<S extends Shape>(shape: S): [StateOf<S>, SetUrlState<S>] {
  const search = useSearch();
  const state = useMemo(() => readState(shape, search), [shape, search]);
  const set = useCallback<SetUrlState<S>>(
    (change, options) => {
      const { pathname, search: now } = window.location;
      navigate(pathname + writeState(shape, now, change), { replace: options?.push !== true });
    },
    [shape],
  );
  return [state, set];
}
