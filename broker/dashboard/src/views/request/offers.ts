// SPDX-License-Identifier: Apache-2.0
// The answers of the planners in a form that can be compared: offers with figures, refusals with counter-offers.
import type { CounterOffer, Quote, Schemas } from "../../api/types";
import { duration, iso, local, seconds } from "../../format/time";
import { rate, volume } from "../../format/units";
import type { Change } from "./form";
import { eased, rounded } from "./span";
import { peakOf, rateChanges } from "./trc";

export interface Offer {
  planner: string;
  /** False: it predicts, and books nothing. */
  books: boolean;
  admitted: boolean;
  start: string | null;
  finish: string | null;
  changes: number | null;
  peakBps: number | null;
  congestion: number | null;
  paths: readonly (readonly string[])[];
  segments: readonly Schemas["Segment"][];
  refusal: Refusal | undefined;
}

export interface Binding {
  link: string;
  interval: { from: string; to: string };
}

export interface Refusal {
  detail: string;
  errors: readonly { field: string; detail: string }[];
  binding: Binding | undefined;
  counterOffers: readonly CounterOffer[];
}

/** The members of a problem beyond those of every problem, as RFC 9457 allows: the contract does not list them. */
type Explained = Schemas["Problem"] & {
  binding?: Binding;
  counter_offers?: CounterOffer[];
  errors?: { field: string; detail: string }[] | null;
};

export function offerOf({ planner, books, admitted, plan, problem }: Quote): Offer {
  const segments = plan?.segments ?? [];
  const known = plan !== null && segments.length > 0;
  return {
    planner,
    books,
    admitted,
    start: plan?.start ?? null,
    finish: plan?.finish ?? null,
    changes: known ? rateChanges(segments) : null,
    peakBps: known ? peakOf(segments) : null,
    congestion: plan?.metrics.congestion_factor ?? null,
    paths: plan?.paths ?? [],
    segments,
    refusal: problem ? refusalOf(problem as Explained) : undefined,
  };
}

function refusalOf(problem: Explained): Refusal {
  return {
    detail: problem.detail,
    errors: problem.errors ?? [],
    binding: problem.binding,
    counterOffers: problem.counter_offers ?? [],
  };
}

export type Merit = "finish" | "changes" | "peakBps" | "congestion";

/** For each merit the offers that are best at it; none where all are alike: that is no reason to choose. */
export function best(offers: readonly Offer[]): Record<Merit, ReadonlySet<string>> {
  const bookable = offers.filter((offer) => offer.admitted && offer.books);
  const least = (of: (offer: Offer) => number | null): Set<string> => {
    const known = bookable.flatMap((offer) => ((value) => (value === null ? [] : [{ planner: offer.planner, value }]))(of(offer)));
    const values = known.map((one) => one.value);
    if (Math.min(...values) === Math.max(...values)) return new Set();
    return new Set(known.filter((one) => one.value === Math.min(...values)).map((one) => one.planner));
  };
  return {
    finish: least((offer) => (offer.finish === null ? null : Math.round(seconds(offer.finish)))),
    changes: least((offer) => offer.changes),
    peakBps: least((offer) => offer.peakBps),
    congestion: least((offer) => offer.congestion),
  };
}

// Planners that cannot do without a deadline do not offer this, and differ in nothing else.
const NO_DEADLINE = "earliest_finish";

export interface Refused {
  planners: string[];
  refusal: Refusal;
}

/** Planners that refuse at the same place with the same ways out are one answer, not four. */
export function refusals(offers: readonly Offer[]): Refused[] {
  const groups = new Map<string, Refused>();
  for (const { planner, refusal } of offers) {
    if (!refusal) continue;
    const ways = waysOut(refusal, 0).filter((way) => way.kind !== NO_DEADLINE);
    const key = JSON.stringify([refusal.binding, ways.length > 0 ? ways : refusal.detail]);
    const group = groups.get(key);
    if (!group) groups.set(key, { planners: [planner], refusal });
    else {
      group.planners.push(planner);
      if (refusal.counterOffers.length > group.refusal.counterOffers.length) group.refusal = refusal;
    }
  }
  return [...groups.values()];
}

export interface WayOut {
  kind: string;
  /** What the button says. */
  words: string;
  change: Change;
}

/** Each counter-offer as a change of the form. `now`: in seconds since 1970. */
export function waysOut(refusal: Refusal, now: number): WayOut[] {
  return refusal.counterOffers.flatMap((offer) => wayOut(offer, now) ?? []);
}

function wayOut(offer: CounterOffer, now: number): WayOut | undefined {
  const { kind } = offer;
  switch (kind) {
    case "smallest_deadline": {
      if (offer.deadline === undefined) return undefined;
      const deadline = eased(seconds(offer.deadline), now);
      return { kind, words: `Deadline ${local(deadline, now)}`, change: { deadline: iso(deadline) } };
    }
    case "largest_volume": {
      const least = rounded(offer.volume_bytes ?? 1);
      return { kind, words: `${volume(least)} by the deadline`, change: { volume_bytes: least } };
    }
    case "smallest_rate":
      return { kind, words: `Up to ${rate(offer.rate_max_bps)}`, change: { rate_max_bps: offer.rate_max_bps ?? null } };
    case "largest_rate_min":
      return {
        kind,
        words: offer.rate_min_bps ? `At least ${rate(offer.rate_min_bps)}` : "No least rate",
        change: { rate_min_bps: offer.rate_min_bps || null },
      };
    case "longest_duration":
      return { kind, words: `For ${duration(offer.duration_s)}`, change: { duration_s: offer.duration_s ?? null } };
    case NO_DEADLINE:
      return { kind, words: `No deadline: done ${local(offer.finish ?? now, now)}`, change: { deadline: null } };
    default:
      return undefined; // of a later broker
  }
}
