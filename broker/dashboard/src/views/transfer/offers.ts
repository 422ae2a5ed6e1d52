// SPDX-License-Identifier: Apache-2.0
// What the broker would take instead of what it refused, as changes that one click makes.
import type { Problem } from "../../api/problem";
import type { CounterOffer, Schemas } from "../../api/types";
import { duration, local } from "../../format/time";
import { rate, volume } from "../../format/units";

/** PATCH: the fields that are given change. */
export type Change = Schemas["TransferChange"];

export interface Offer {
  title: string;
  change: Change;
}

export function offersOf(problem: Problem): Offer[] {
  const given = problem.document.counter_offers;
  return Array.isArray(given) ? (given as CounterOffer[]).flatMap((offer) => asOffer(offer) ?? []) : [];
}

function asOffer({
  kind,
  finish,
  deadline,
  volume_bytes,
  rate_max_bps,
  rate_min_bps,
  duration_s,
}: CounterOffer): Offer | undefined {
  if (kind === "earliest_finish" && finish)
    return { title: `Without a deadline: finishes ${local(finish)}`, change: { deadline: null } };
  if (deadline) return { title: `Deadline ${local(deadline)}`, change: { deadline } };
  if (volume_bytes) return { title: `Only ${volume(volume_bytes)}`, change: { volume_bytes } };
  if (rate_max_bps) return { title: `Up to ${rate(rate_max_bps)}`, change: { rate_max_bps } };
  if (rate_min_bps !== undefined)
    return { title: rate_min_bps ? `At least ${rate(rate_min_bps)}` : "Without a lowest rate", change: { rate_min_bps } };
  if (duration_s) return { title: `For ${duration(duration_s)}`, change: { duration_s } };
  return undefined;
}

export interface Binding {
  link: string;
  from: string;
  to: string;
  /** Ids of the transfers that hold the link then. */
  reservations: readonly string[];
}

export function bindingOf(problem: Problem): Binding | undefined {
  const given = problem.document.binding as
    | { link: string; interval: { from: string; to: string }; reservations?: string[] }
    | undefined;
  return given && { link: given.link, from: given.interval.from, to: given.interval.to, reservations: given.reservations ?? [] };
}

/** Transfers whose promises the refused change would break. */
export function brokenBy(problem: Problem): readonly { id: string; label: string | null; finish: string | null }[] {
  const given = problem.document.broken;
  return Array.isArray(given) ? (given as { id: string; label: string | null; finish: string | null }[]) : [];
}
