// SPDX-License-Identifier: Apache-2.0
import { type FocusEvent, useMemo, useRef, useState } from "react";
import { type Steady, steady } from "./steady";

export interface Held<R> extends Steady<R> {
  /** Show the rows as they are, though somebody still points at them. */
  release: () => void;
  /** For the element around the rows. */
  hold: {
    onPointerEnter: () => void;
    onPointerLeave: () => void;
    onFocus: (event: FocusEvent) => void;
    onBlur: (event: FocusEvent) => void;
  };
}

/** `question`: with another one, the rows are others, and nothing is held. */
export function useSteady<R>(fresh: readonly R[], keyOf: (row: R) => string, question: string): Held<R> {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const [released, setReleased] = useState<readonly R[] | undefined>(undefined);
  const shown = useRef<{ question: string; rows: readonly R[] }>({ question, rows: fresh });
  const found = useMemo(() => {
    const free = shown.current.question !== question || released === fresh || !(pointed || focused);
    const next = free ? { rows: fresh, waiting: 0 } : steady(shown.current.rows, fresh, keyOf);
    shown.current = { question, rows: next.rows };
    return next;
  }, [fresh, keyOf, question, pointed, focused, released]);
  const hold = useMemo(
    () => ({
      onPointerEnter: () => setPointed(true),
      onPointerLeave: () => setPointed(false),
      // On a header there is nothing to hold: whoever sorts wants to see rows move.
      onFocus: (event: FocusEvent) => setFocused(event.target.closest("tbody") !== null),
      onBlur: (event: FocusEvent) => {
        if (!event.currentTarget.contains(event.relatedTarget)) setFocused(false);
      },
    }),
    [],
  );
  return { ...found, release: () => setReleased(fresh), hold };
}
