// SPDX-License-Identifier: Apache-2.0
// The data of the plot, made of the offers and the free capacity. Pure.
import { plannerColour, plannerTitle } from "../../format/planners";
import { iso, seconds } from "../../format/time";
import { align, type StepFunction } from "../../plot/align";
import type { Band, Range, Series } from "../../plot/steps";
import type { Form } from "./form";
import type { Offer } from "./offers";
import { trcOf } from "./trc";

/** Key of the area under gamma(t), which has no entry in the legend. */
export const AREA = "area";

export interface Drawn {
  x: Float64Array;
  series: Series[];
}

/** gamma(t) as an area, the chosen offer's TRC vector as an area on it, and the others as dashed lines in front. */
export function drawn(free: StepFunction | undefined, offers: readonly Offer[], chosen: string): Drawn {
  const shown = offers
    .filter((offer) => offer.segments.length > 0)
    .sort((a, b) => Number(b.planner === chosen) - Number(a.planner === chosen));
  const { x, values } = align([free ?? { x: [], values: [] }, ...shown.map((offer) => trcOf(offer.segments))]);
  const area: Series = { key: AREA, label: "", values: values[0]!, colour: "line", fill: true, width: 0 };
  const gamma: Series = { key: "free", label: "Free", values: values[0]!, colour: "series-7", width: 1.5 };
  const lines = shown.map(({ planner }, index): Series => {
    const line = { key: planner, label: plannerTitle(planner), values: values[index + 1]!, colour: plannerColour(planner) };
    return planner === chosen ? { ...line, fill: true, width: 1 } : { ...line, width: 2, dash: [6, 2 + 2 * index] };
  });
  return { x, series: [area, gamma, ...lines] };
}

/** The interval that binds the chosen planner, where it refuses. */
export function bandsOf(offers: readonly Offer[], chosen: string): Band[] {
  const interval = offers.find((offer) => offer.planner === chosen)?.refusal?.binding?.interval;
  return interval ? [{ from: seconds(interval.from), to: seconds(interval.to), label: "binds", colour: "bad", pattern: true }] : [];
}

/** The paths whose gamma(t) can be shown: that of the chosen offer, the link that binds the chosen planner, then all others. */
export function choices(offers: readonly Offer[], chosen: string): string[][] {
  const first = [...offers].sort((a, b) => Number(b.planner === chosen) - Number(a.planner === chosen));
  const all = first.flatMap(({ paths, refusal }) => [
    ...paths.map((path) => [...path]),
    ...(refusal?.binding ? [[refusal.binding.link]] : []),
  ]);
  return [...new Map(all.map((links) => [links.join("\n"), links])).values()];
}

/** The instants that the plot must include. `now` is the start where `not_before` is empty. */
export function instantsOf(form: Pick<Form, "not_before" | "deadline">, offers: readonly Offer[], now: number): number[] {
  const start = Math.max(now, form.not_before === null ? now : seconds(form.not_before));
  const ends = offers.flatMap((offer) => (offer.finish === null ? [] : [seconds(offer.finish)]));
  // Where nobody offers anything, the first deadline that would do is to be within reach.
  const deadlines = offers.flatMap(
    (offer) => offer.refusal?.counterOffers.flatMap(({ deadline }) => (deadline === undefined ? [] : [seconds(deadline)])) ?? [],
  );
  const reach = ends.length === 0 && deadlines.length > 0 ? [Math.min(...deadlines)] : [];
  return [start, ...(form.deadline === null ? [] : [seconds(form.deadline)]), ...ends, ...reach];
}

export function calendarPath(link: string, [from, to]: Range): string {
  return `/v1/links/${encodeURIComponent(link)}/calendar?from=${iso(from)}&to=${iso(to)}&points=1000`;
}
