// SPDX-License-Identifier: Apache-2.0
// Where a key leads from a place on the schedule: up and down between rows, left and right between the steps of a row.
import type { Range } from "../../plot/gestures";
import type { Place } from "./geometry";
import { type Line, type Row, stepsBetween } from "./rows";

/** Undefined: the key is none of ours, or leads nowhere. `page`: how many lines are on the screen. */
export function walked(
  lines: readonly Line[],
  from: Place | undefined,
  key: string,
  page: number,
  range: Range,
): Place | undefined {
  switch (key) {
    case "ArrowDown":
      return toRow(lines, from === undefined ? 0 : from.line + 1, 1, range);
    case "ArrowUp":
      return toRow(lines, from === undefined ? 0 : from.line - 1, from === undefined ? 1 : -1, range);
    case "PageDown":
      return toRow(lines, Math.min(lines.length - 1, (from?.line ?? 0) + page), -1, range);
    case "PageUp":
      return toRow(lines, Math.max(0, (from?.line ?? 0) - page), 1, range);
    case "Home":
      return toRow(lines, 0, 1, range);
    case "End":
      return toRow(lines, lines.length - 1, -1, range);
    case "ArrowRight":
      return from && alongRow(lines, from, 1);
    case "ArrowLeft":
      return from && alongRow(lines, from, -1);
    default:
      return undefined;
  }
}

/** The nearest row from `line` on in this direction, on its first step that is seen: headers are passed over. */
function toRow(lines: readonly Line[], line: number, by: 1 | -1, range: Range): Place | undefined {
  for (let index = line; index >= 0 && index < lines.length; index += by) {
    const found = lines[index];
    if (found?.is === "row") return { line: index, step: firstSeen(found.row, range) };
  }
  return undefined;
}

function firstSeen(row: Row, [from, to]: Range): number {
  const [first, last] = stepsBetween(row, from, to);
  return last > first ? first : 0;
}

function alongRow(lines: readonly Line[], { line, step }: Place, by: 1 | -1): Place | undefined {
  const found = lines[line];
  if (found?.is !== "row") return undefined;
  return { line, step: Math.max(0, Math.min(found.row.begins.length - 1, step + by)) };
}

/** The range moved no further than needed for the step's begin to be seen. */
export function revealing([from, to]: Range, row: Row, step: number): Range {
  const begin = row.begins[step] ?? from;
  const end = row.ends[step] ?? begin;
  if (end > from && begin < to) return [from, to];
  const length = to - from;
  return [begin - length / 4, begin + (3 * length) / 4];
}

/** What stays where it is when a key zooms: the step that the keyboard is on, as far as it is seen; else the middle. */
export function centreOf([from, to]: Range, row: Row | undefined, step: number): number {
  const [begin, end] = [row?.begins[step], row?.ends[step]];
  if (begin === undefined || end === undefined || end <= from || begin >= to) return (from + to) / 2;
  return (Math.max(from, begin) + Math.min(to, end)) / 2;
}
