// SPDX-License-Identifier: Apache-2.0
// Where things are on the schedule: seconds and lines to pixels and back, what is visible, and what lies under the pointer.
import type { Range } from "../../plot/gestures";
import { type Line, type Row, stepAt, stepsBetween } from "./rows";

/** The part of the schedule that is on the screen. Pixels are those of CSS, from the upper left corner of the canvas. */
export interface Viewport {
  range: Range;
  width: number;
  height: number;
  /** Of the names, left of the plot. */
  gutter: number;
  /** Of the axis, above the lines. */
  axis: number;
  rowPx: number;
  /** How far the lines are scrolled up. */
  scroll: number;
}

export const xOf = ({ range: [from, to], gutter, width }: Viewport, time: number): number =>
  gutter + ((time - from) / (to - from)) * (width - gutter);
export const timeAt = ({ range: [from, to], gutter, width }: Viewport, x: number): number =>
  from + ((x - gutter) / (width - gutter)) * (to - from);
export const yOf = ({ axis, scroll, rowPx }: Viewport, line: number): number => axis + line * rowPx - scroll;

/** Lines [first, last) of `count` that are on the screen at least in part. */
export function visibleLines({ axis, height, scroll, rowPx }: Viewport, count: number): [number, number] {
  const first = Math.max(0, Math.floor(scroll / rowPx));
  return [Math.min(first, count), Math.min(count, Math.ceil((scroll + height - axis) / rowPx))];
}

export interface Place {
  line: number;
  /** Of the row; -1: between its steps, or on its name. */
  step: number;
}

const REACH_PX = 4; // narrow steps are met from so far beside them

export function placeAt(view: Viewport, lines: readonly Line[], x: number, y: number): Place | undefined {
  if (y < view.axis || y >= view.height) return undefined;
  const line = Math.floor((y - view.axis + view.scroll) / view.rowPx);
  const found = lines[line];
  if (found?.is !== "row") return undefined;
  return { line, step: x < view.gutter ? -1 : stepNear(view, found.row, x) };
}

function stepNear(view: Viewport, row: Row, x: number): number {
  const exact = stepAt(row, timeAt(view, x));
  if (exact >= 0) return exact;
  const [first, last] = stepsBetween(row, timeAt(view, x - REACH_PX), timeAt(view, x + REACH_PX));
  return last > first ? first : -1;
}

export interface Box {
  left: number;
  right: number;
  rate: number;
}

const LEAST_PX = 2; // a step is never too short to be seen

/** The visible steps of a row, those that share a pixel as one of the largest rate: as many boxes as pixels, however many steps. */
export function boxesOf(view: Viewport, row: Row): Box[] {
  const [first, last] = stepsBetween(row, view.range[0], view.range[1]);
  const boxes: Box[] = [];
  for (let index = first; index < last; index += 1) {
    const left = Math.max(view.gutter, xOf(view, row.begins[index]!));
    const right = Math.min(view.width, Math.max(left + LEAST_PX, xOf(view, row.ends[index]!)));
    const rate = row.rates[index]!;
    const before = boxes.at(-1);
    if (before && right - before.left < 1.5 * LEAST_PX) {
      before.rate = Math.max(before.rate, rate);
      before.right = Math.max(before.right, right);
    } else boxes.push({ left: Math.max(left, before?.right ?? 0), right, rate });
  }
  return boxes;
}

const PADDING_PX = 3;
const LEAST_HEIGHT_PX = 3;

/** The top of a box whose rate is this share of the scale. */
export function topOf(view: Viewport, line: number, share: number): number {
  const room = view.rowPx - 2 * PADDING_PX;
  return floorOf(view, line) - Math.max(LEAST_HEIGHT_PX, Math.min(1, share) * room);
}

export const floorOf = (view: Viewport, line: number): number => yOf(view, line + 1) - PADDING_PX;

/** How far to scroll so that a line is seen whole; the same as now if it is. */
export function scrollTo(view: Viewport, line: number): number {
  const top = line * view.rowPx;
  const room = view.height - view.axis;
  if (top < view.scroll) return top;
  return top + view.rowPx > view.scroll + room ? top + view.rowPx - room : view.scroll;
}
