// SPDX-License-Identifier: Apache-2.0
// Live quotes: requested when the form has not changed for a moment, aborted by the next change, and repeated as bookings change.
import { useEffect, useMemo, useState } from "react";
import { onInvalidate } from "../../api/cache";
import { post } from "../../api/client";
import { asProblem, type Problem } from "../../api/problem";
import type { Schemas } from "../../api/types";
import { type Offer, offerOf } from "./offers";

const RESTS_MS = 200;
// Planners that take requests together make everybody else wait while they think: what nobody typed is asked less often.
const LEAST_AGE_MS = 4_000;
const MOST_AGE_MS = 30_000; // "as early as possible" means another instant by then

export interface Quotes {
  /** Of the latest question that was answered. */
  offers: readonly Offer[] | undefined;
  problem: Problem | undefined;
  /** The answer to what the form says now is on its way. */
  outdated: boolean;
  reload: () => void;
}

interface Answer {
  key: string;
  offers: readonly Offer[] | undefined;
  problem: Problem | undefined;
  at: number;
}

const NOTHING: Answer = { key: "", offers: undefined, problem: undefined, at: 0 };

export function useQuotes(question: Schemas["QuoteRequest"] | undefined): Quotes {
  const key = question ? JSON.stringify(question) : "";
  const [answer, setAnswer] = useState<Answer>(NOTHING);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (key === "") {
      setAnswer(NOTHING);
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => void ask(key, stop.signal, setAnswer), RESTS_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key, turn]);
  useEffect(() => {
    if (key === "" || answer.key !== key) return;
    const again = (): void => setTurn((last) => last + 1);
    const age = Date.now() - answer.at;
    let soon: ReturnType<typeof setTimeout> | undefined;
    const old = setTimeout(again, Math.max(0, MOST_AGE_MS - age));
    const stop = onInvalidate((concerns) => {
      if (concerns("/v1/links")) soon ??= setTimeout(again, Math.max(0, LEAST_AGE_MS - (Date.now() - answer.at)));
    });
    return () => {
      clearTimeout(old);
      clearTimeout(soon);
      stop();
    };
  }, [key, answer]);
  return useMemo(
    () => ({
      offers: answer.offers,
      problem: answer.key === key ? answer.problem : undefined,
      outdated: key !== "" && answer.key !== key,
      reload: () => setTurn((last) => last + 1),
    }),
    [answer, key],
  );
}

async function ask(key: string, signal: AbortSignal, tell: (answer: (before: Answer) => Answer) => void): Promise<void> {
  try {
    const { quotes } = await post<Schemas["Quotes"]>("/v1/quotes", JSON.parse(key), { signal });
    const offers = quotes.map(offerOf);
    tell(() => ({ key, offers, problem: undefined, at: Date.now() }));
  } catch (reason) {
    // What was offered for another question is no answer to this one, but a broker that is away for a moment has not withdrawn it.
    if (!signal.aborted)
      tell((before) => ({
        key,
        offers: before.key === key ? before.offers : undefined,
        problem: asProblem(reason),
        at: Date.now(),
      }));
  }
}
