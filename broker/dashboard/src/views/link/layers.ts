// SPDX-License-Identifier: Apache-2.0
// The stack of bookings: the largest transfers or projects and the rest, at as many instants as a screen can show. Computed once
// for each answer of the broker, on flat arrays; panning and zooming then only draw.
import { transferName } from "../../format/names";
import type { Range } from "../../plot/steps";
import type { Bookings, Holder } from "./bookings";

export const BY = ["transfer", "project"] as const;
export type By = (typeof BY)[number];

export interface Layer {
  key: string;
  label: string;
  /** How many transfers are in it. */
  count: number;
  /** Of a layer that is one transfer. */
  holder?: Holder;
  /** As many as the instants; bit/s. */
  values: Float64Array;
}

export const OTHERS = "others";
const NO_PROJECT = "no project";

/** Instants at which the stack is drawn, and its layers from the bottom up, the one with the most volume first. */
export interface Stack {
  x: Float64Array;
  layers: Layer[];
}

export function stackOf(bookings: Bookings, by: By, most: number, range: Range, columns: number): Stack {
  const x = instants(bookings, range, columns);
  const { layers, layerOf } = grouped(bookings, by, most, range, x.length);
  const { owner, begin, end, rate } = bookings;
  const place = finder(x, range, columns);
  for (let i = 0; i < owner.length; i += 1) {
    const values = layers[layerOf[owner[i]!]!]?.values;
    if (!values) continue; // outside of the range
    const last = place(end[i]!);
    for (let at = place(begin[i]!); at < last; at += 1) values[at] = values[at]! + rate[i]!;
  }
  return { x, layers };
}

/** "12 other transfers" */
export const othersName = (count: number): string => `${count} other ${count === 1 ? "transfer" : "transfers"}`;

interface Group {
  key: string;
  label: string;
  holders: number[];
  bits: number;
}

/** The `most` groups with the largest volume in the range have a layer each, all others one together. */
function grouped(bookings: Bookings, by: By, most: number, range: Range, length: number): { layers: Layer[]; layerOf: Int32Array } {
  const groups = groupsOf(bookings, by, range);
  // A single one left over has its own name rather than "others".
  const own = bookings.rest === 0 && groups.length === most + 1 ? groups.length : Math.min(groups.length, most);
  const layers = groups.slice(0, own).map(({ key, label, holders }): Layer => {
    const only = by === "transfer" ? bookings.holders[holders[0]!] : undefined;
    return { key, label, count: holders.length, ...(only && { holder: only }), values: new Float64Array(length) };
  });
  const count = groups.slice(own).reduce((sum, { holders }) => sum + holders.length, bookings.rest);
  if (count > 0) layers.push({ key: OTHERS, label: othersName(count), count, values: new Float64Array(length) });
  const layerOf = new Int32Array(bookings.holders.length + 1).fill(own);
  groups.slice(0, own).forEach(({ holders }, layer) => {
    for (const holder of holders) layerOf[holder] = layer;
  });
  return { layers, layerOf };
}

function groupsOf({ holders, owner, begin, end, rate }: Bookings, by: By, [from, to]: Range): Group[] {
  const bits = new Float64Array(holders.length + 1);
  for (let i = 0; i < owner.length; i += 1) {
    const lasting = Math.min(end[i]!, to) - Math.max(begin[i]!, from);
    if (lasting > 0) bits[owner[i]!] = bits[owner[i]!]! + lasting * rate[i]!;
  }
  const groups = new Map<string, Group>();
  holders.forEach((holder, index) => {
    if (bits[index] === 0) return;
    const key = by === "transfer" ? holder.id : (holder.project ?? "");
    const group = groups.get(key) ?? {
      key,
      label: by === "transfer" ? transferName(holder) : key || NO_PROJECT,
      holders: [],
      bits: 0,
    };
    group.holders.push(index);
    group.bits += bits[index]!;
    groups.set(key, group);
  });
  return [...groups.values()].sort((a, b) => b.bits - a.bits || (a.key < b.key ? -1 : 1));
}

/**
 * Where the sum of all layers changes within the range; of more changes than `columns` have room for, those that a column of pixels
 * would show: what it begins with, its peak and its trough.
 */
export function instants(bookings: Bookings, [from, to]: Range, columns: number): Float64Array {
  const { x, sum } = summed(bookings, [from, to], columns);
  if (x.length <= 3 * columns) return x;
  const kept = new Float64Array(3 * columns);
  const width = (to - from) / columns;
  let length = 0;
  for (let first = 0; first < x.length; ) {
    const column = Math.floor((x[first]! - from) / width);
    let [high, low, next] = [first, first, first + 1];
    for (; next < x.length && Math.floor((x[next]! - from) / width) === column; next += 1) {
      if (sum[next]! > sum[high]!) high = next;
      if (sum[next]! < sum[low]!) low = next;
    }
    const [one, other] = high < low ? [high, low] : [low, high];
    kept[length++] = x[first]!;
    if (one > first) kept[length++] = x[one]!;
    if (other > one) kept[length++] = x[other]!;
    first = next;
  }
  return kept.slice(0, length);
}

/** The changes of all segments together, clipped to [from, to): what is booked from each on. */
function summed({ owner, begin, end, rate }: Bookings, range: Range, columns: number): { x: Float64Array; sum: Float64Array } {
  const [from, to] = range;
  const every = new Float64Array(2 * begin.length + 1);
  let count = 0;
  every[count++] = from;
  for (let i = 0; i < begin.length; i += 1) {
    if (begin[i]! > from && begin[i]! < to) every[count++] = begin[i]!;
    const goesOn = owner[i] === owner[i + 1] && end[i] === begin[i + 1];
    if (!goesOn && end[i]! > from && end[i]! < to) every[count++] = end[i]!;
  }
  const x = distinct(every.subarray(0, count).sort());
  const sum = new Float64Array(x.length + 1); // what ends at the end of the range or behind it ends in the last
  const place = finder(x, range, columns);
  for (let i = 0; i < begin.length; i += 1) {
    if (end[i]! <= from || begin[i]! >= to) continue;
    const [first, last] = [place(begin[i]!), place(end[i]!)];
    sum[first] = sum[first]! + rate[i]!;
    sum[last] = sum[last]! - rate[i]!;
  }
  for (let i = 1; i < x.length; i += 1) sum[i] = sum[i]! + sum[i - 1]!;
  return { x, sum };
}

function distinct(sorted: Float64Array): Float64Array {
  let length = 1;
  for (let i = 1; i < sorted.length; i += 1) if (sorted[i] !== sorted[length - 1]) sorted[length++] = sorted[i]!;
  return sorted.slice(0, length);
}

/**
 * Returns a search in ascending `x`: the first index whose value is not less than the given one; the length when there is none. A
 * table of equal spans narrows it: a binary search through all of 1e5 instants would miss the cache at each step.
 */
export function finder(x: Float64Array, [from, to]: Range, spans: number): (value: number) => number {
  const perSecond = spans / (to - from);
  const spanOf = (value: number): number => Math.max(0, Math.min(spans, Math.floor((value - from) * perSecond)));
  const starts = new Int32Array(spans + 2);
  for (let i = 0; i < x.length; i += 1) starts[spanOf(x[i]!) + 1]! += 1;
  for (let span = 1; span < starts.length; span += 1) starts[span]! += starts[span - 1]!;
  return (value) => {
    const span = spanOf(value);
    let low = starts[span]!;
    let high = starts[span + 1]!;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x[middle]! < value) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

// All but series-7: grey is for the others.
const COLOURS = [0, 1, 2, 3, 4, 5, 6, 8, 9].map((number) => `series-${number}`);
const OTHERS_COLOUR = "edge";

/** A colour for each layer. One that was there before keeps its own, so that zooming repaints nobody. */
export function coloured(keys: readonly string[], before: ReadonlyMap<string, string>): Map<string, string> {
  const colours = new Map<string, string>();
  for (const key of keys) {
    const had = key === OTHERS ? OTHERS_COLOUR : before.get(key);
    if (had) colours.set(key, had);
  }
  const taken = new Set(colours.values());
  const free = COLOURS.filter((colour) => !taken.has(colour));
  for (const key of keys) if (!colours.has(key)) colours.set(key, free.shift() ?? OTHERS_COLOUR);
  return colours;
}
