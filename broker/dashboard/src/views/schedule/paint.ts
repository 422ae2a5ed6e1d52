// SPDX-License-Identifier: Apache-2.0
// Paints the visible part of the schedule: the cost grows with pixels, not with transfers.

import { timeLabels } from "../../plot/axes";
import type { Surface } from "../../plot/canvas";
import { boxesOf, floorOf, type Place, topOf, type Viewport, visibleLines, xOf, yOf } from "./geometry";
import type { Header, Line, Row } from "./rows";
import { painter } from "./signs";
import { ticksOf } from "./ticks";

export interface Picture {
  view: Viewport;
  lines: readonly Line[];
  now: number;
  /** The rate that fills a row; undefined: each row has its own. */
  scale: number | undefined;
  /** Where the keyboard is. */
  focus: Place | undefined;
  /** Where the pointer is. */
  hover: Place | undefined;
  /** Pixels of the root's font. */
  rem: number;
}

type Context = CanvasRenderingContext2D;

export function paint(context: Context, surface: Surface, picture: Picture): void {
  const { view, lines, focus, hover } = picture;
  if (view.width <= view.gutter) return;
  const { colours } = surface;
  const [first, last] = visibleLines(view, lines.length);
  context.font = `${0.92 * picture.rem}px ${colours.font}`;
  context.textBaseline = "middle";
  context.save();
  context.beginPath();
  context.rect(0, view.axis, view.width, view.height - view.axis);
  context.clip();
  context.fillStyle = colours.surface;
  context.fillRect(0, view.axis, view.width, view.height - view.axis);
  paintPast(context, surface, picture);
  for (let line = first; line < last; line += 1)
    paintGround(context, surface, view, line, line === focus?.line, line === hover?.line);
  context.restore();
  paintAxis(context, surface, picture);
  context.save();
  context.beginPath();
  context.rect(0, view.axis, view.width, view.height - view.axis);
  context.clip();
  paintLines(context, surface, picture, first, last);
  context.restore();
  paintNow(context, surface, picture);
}

/** What is over lies on another ground. */
function paintPast(context: Context, { colours }: Surface, { view, now }: Picture): void {
  const until = Math.min(view.width, xOf(view, now));
  if (until <= view.gutter) return;
  context.fillStyle = colours.ground;
  context.fillRect(view.gutter, view.axis, until - view.gutter, view.height - view.axis);
}

function paintGround(
  context: Context,
  { colours }: Surface,
  view: Viewport,
  line: number,
  focused: boolean,
  hovered: boolean,
): void {
  const y = yOf(view, line);
  if (focused || hovered) {
    context.fillStyle = focused ? colours["busy-ground"] : colours["idle-ground"];
    context.fillRect(0, y, view.width, view.rowPx);
  }
  context.fillStyle = colours.line;
  context.globalAlpha = 0.6;
  context.fillRect(0, y + view.rowPx - 1, view.width, 1);
  context.globalAlpha = 1;
}

function paintLines(context: Context, surface: Surface, picture: Picture, first: number, last: number): void {
  const { view, lines, scale, focus, hover, rem } = picture;
  const box = painter(surface.colours, surface.ratio);
  for (let index = first; index < last; index += 1) {
    const line = lines[index];
    if (line?.is === "header") paintHeader(context, surface, picture, index, line.header);
    if (line?.is !== "row") continue;
    const row = line.row;
    name(context, surface, picture, index, row.name, 0.75 * rem);
    const path = pathOf(view, index, row, scale ?? row.peak);
    if (path) box(context, path, row.state);
    for (const place of [hover, focus])
      if (place?.line === index && place.step >= 0) outline(context, surface, picture, row, place);
  }
}

/** The boxes of a row as one path. Half pixels, because strokes lie on both sides of theirs. */
function pathOf(view: Viewport, line: number, row: Row, scale: number): Path2D | undefined {
  const boxes = boxesOf(view, row);
  if (boxes.length === 0) return undefined;
  const path = new Path2D();
  const floor = Math.round(floorOf(view, line)) + 0.5;
  for (const { left, right, rate } of boxes) {
    const top = Math.round(topOf(view, line, rate / scale)) + 0.5;
    path.rect(Math.round(left) + 0.5, top, Math.max(1, Math.round(right - left) - 1), floor - top);
  }
  return path;
}

function outline(context: Context, { colours }: Surface, { view, scale }: Picture, row: Row, { line, step }: Place): void {
  const left = Math.max(view.gutter + 1, xOf(view, row.begins[step]!));
  const right = Math.min(view.width - 1, Math.max(left + 3, xOf(view, row.ends[step]!)));
  if (right <= left) return;
  const top = topOf(view, line, row.rates[step]! / (scale ?? row.peak));
  context.strokeStyle = colours.text;
  context.lineWidth = 2;
  context.strokeRect(left, top, right - left, floorOf(view, line) - top);
}

function paintHeader(context: Context, surface: Surface, picture: Picture, line: number, header: Header): void {
  const { view, rem } = picture;
  const { colours } = surface;
  context.fillStyle = colours["idle-ground"];
  context.fillRect(0, yOf(view, line), view.width, view.rowPx);
  context.font = `600 ${0.92 * rem}px ${colours.font}`;
  context.fillStyle = colours.text;
  const y = yOf(view, line) + view.rowPx / 2;
  context.fillText(header.name, 0.5 * rem, y);
  const after = 0.5 * rem + context.measureText(header.name).width + 0.6 * rem;
  context.font = `${0.92 * rem}px ${colours.font}`;
  context.fillStyle = colours.muted;
  context.fillText(`${header.count} ${header.count === 1 ? "transfer" : "transfers"}`, after, y);
}

function name(context: Context, { colours }: Surface, { view, rem }: Picture, line: number, text: string, left: number): void {
  context.fillStyle = colours.text;
  context.fillText(shortened(context, text, view.gutter - left - 0.5 * rem), left, yOf(view, line) + view.rowPx / 2);
}

const ELLIPSIS = "…";
const MOST_REMEMBERED = 5_000;
const remembered = new Map<string, string>();

/** Measuring text is the slowest part of a frame: what was cut once is remembered. */
function shortened(context: Context, text: string, room: number): string {
  const key = `${context.font} ${Math.round(room)} ${text}`;
  const known = remembered.get(key);
  if (known !== undefined) return known;
  const fits = (shown: string): boolean => context.measureText(shown).width <= room;
  const shown = fits(text) ? text : longest(text, fits);
  if (remembered.size >= MOST_REMEMBERED) remembered.clear();
  remembered.set(key, shown);
  return shown;
}

function longest(text: string, fits: (shown: string) => boolean): string {
  let [kept, tooLong] = [0, text.length];
  while (tooLong - kept > 1) {
    const middle = (kept + tooLong) >> 1;
    if (fits(cut(text, middle))) kept = middle;
    else tooLong = middle;
  }
  return cut(text, kept);
}

/** So many characters of it, without those in the middle: names often begin alike and differ at their end. */
function cut(text: string, length: number): string {
  return text.slice(0, Math.ceil(length / 2)).trimEnd() + ELLIPSIS + text.slice(text.length - Math.floor(length / 2)).trimStart();
}

function paintAxis(context: Context, { colours }: Surface, { view, now, rem }: Picture): void {
  const { step, at } = ticksOf(view.range, Math.max(2, Math.floor((view.width - view.gutter) / (6.5 * rem))));
  context.textAlign = "center";
  for (const [index, label] of timeLabels(at, step).entries()) {
    const x = Math.round(xOf(view, at[index]!));
    context.fillStyle = colours.line;
    context.fillRect(x, view.axis - 4, 1, view.height - view.axis + 4);
    context.fillStyle = colours.muted;
    const [clock = "", day] = label.split("\n");
    // Where "now" is written there is no room for another label.
    if (Math.abs(x - xOf(view, now)) > 3 * rem) context.fillText(clock, x, view.axis - 0.95 * rem);
    if (day) context.fillText(day, x, view.axis - 2.1 * rem);
  }
  context.textAlign = "left";
  context.fillStyle = colours.line;
  context.fillRect(0, view.axis - 1, view.width, 1);
  context.fillRect(view.gutter, view.axis, 1, view.height - view.axis);
}

function paintNow(context: Context, { colours }: Surface, { view, now, rem }: Picture): void {
  const x = Math.round(xOf(view, now));
  if (x < view.gutter || x > view.width) return;
  context.fillStyle = colours.bad;
  context.fillRect(x - 1, view.axis - 0.2 * rem, 2, view.height - view.axis + 0.2 * rem);
  const label = "now";
  context.font = `600 ${0.85 * rem}px ${colours.font}`;
  const width = context.measureText(label).width + 0.6 * rem;
  context.fillRect(x - width / 2, view.axis - 1.5 * rem, width, 1.3 * rem);
  context.fillStyle = colours.surface;
  context.textAlign = "center";
  context.fillText(label, x, view.axis - 0.82 * rem);
  context.textAlign = "left";
}
