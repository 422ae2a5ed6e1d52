// SPDX-License-Identifier: Apache-2.0
// What a plot of steps paints besides its axes: the series as lines and areas, bands of time, and lines at instants.
import uPlot from "uplot";
import { stepAt } from "./align";
import type { Colours } from "./colours";
import { drawSteps, type Mapping, type Pen } from "./decimate";

export interface Band {
  from: number;
  to: number;
  label: string;
  /** A token such as "warn" or "series-3", or any colour. */
  colour: string;
  /** Diagonal lines, for what must not be told by colour alone. */
  pattern?: boolean;
}

export interface Line {
  at: number;
  label: string;
  colour: string;
}

/** Pixels of the canvas for seconds and values of the plot. */
export function mappingOf(u: uPlot): Mapping {
  const from = u.scales.x?.min ?? 0;
  const xScale = u.bbox.width / ((u.scales.x?.max ?? 1) - from);
  const yScale = -u.bbox.height / (u.scales.y?.max ?? 1);
  return { x0: u.bbox.left - from * xScale, xScale, y0: u.bbox.top + u.bbox.height, yScale };
}

/** A path builder of uPlot for a line, an area or both. `end` is the second until which the last step holds. */
export function stepPaths(line: boolean, area: boolean, end: () => number | undefined): uPlot.Series.PathBuilder {
  return (u, index) => {
    const x = u.data[0] as ArrayLike<number>;
    const y = u.data[index] as ArrayLike<number>;
    const map = mappingOf(u);
    const { left, width } = u.bbox;
    const from = Math.max(0, stepAt(x, u.scales.x?.min ?? 0));
    const to = Math.min(x.length, stepAt(x, u.scales.x?.max ?? 0) + 1);
    const last = to < x.length ? x[to] : end();
    const right = Math.min(left + width + 2, last === undefined ? Infinity : map.x0 + last * map.xScale);
    const stroke = line ? new Path2D() : null;
    const fill = area ? new Path2D() : null;
    if (stroke) drawSteps(x, y, [from, to], right, map, linePen(stroke));
    if (fill) drawSteps(x, y, [from, to], right, map, areaPen(fill, map.y0));
    return { stroke, fill };
  };
}

function linePen(path: Path2D): Pen {
  return {
    moveTo: (x, y) => path.moveTo(x, y),
    lineTo: (x, y) => path.lineTo(x, y),
    column: (left, _, low, high) => {
      path.lineTo(left, low);
      path.lineTo(left, high);
    },
    end: () => {},
  };
}

/** The area down to 0. Where several changes share a column of pixels, the largest value fills it: a peak must not be hidden. */
function areaPen(path: Path2D, zero: number): Pen {
  return {
    moveTo: (x, y) => {
      path.moveTo(x, zero);
      path.lineTo(x, y);
    },
    lineTo: (x, y) => path.lineTo(x, y),
    column: (left, right, low) => {
      path.lineTo(left, low); // low on the screen's axis, which points down
      path.lineTo(right, low);
    },
    end: (x) => {
      path.lineTo(x, zero);
      path.closePath();
    },
  };
}

/** Behind the series. */
export function paintBands(u: uPlot, bands: readonly Band[], colours: Colours): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const band of bands) {
    const left = Math.max(bbox.left - 2, u.valToPos(band.from, "x", true));
    const right = Math.min(bbox.left + bbox.width + 2, u.valToPos(band.to, "x", true));
    if (right <= left) continue;
    const width = Math.max(1, right - left);
    ctx.fillStyle = ctx.strokeStyle = colours.of(band.colour);
    ctx.globalAlpha = 0.16;
    ctx.fillRect(left, bbox.top, width, bbox.height);
    ctx.globalAlpha = 0.5;
    ctx.lineWidth = uPlot.pxRatio;
    if (band.pattern) hatch(ctx, left, bbox.top, width, bbox.height);
    ctx.globalAlpha = 1;
    caption(u, band.label, left + 4 * uPlot.pxRatio, width, colours.text, colours);
  }
  ctx.restore();
}

function hatch(ctx: CanvasRenderingContext2D, left: number, top: number, width: number, height: number): void {
  const gap = 8 * uPlot.pxRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, width, height);
  ctx.clip();
  ctx.beginPath();
  for (let x = left - height; x < left + width; x += gap) {
    ctx.moveTo(x, top + height);
    ctx.lineTo(x + height, top);
  }
  ctx.stroke();
  ctx.restore();
}

/** In front of the series. */
export function paintLines(u: uPlot, lines: readonly Line[], colours: Colours): void {
  const { ctx, bbox } = u;
  ctx.save();
  for (const line of lines) {
    const x = Math.round(u.valToPos(line.at, "x", true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = colours.of(line.colour);
    ctx.lineWidth = 1.5 * uPlot.pxRatio;
    ctx.setLineDash([4 * uPlot.pxRatio, 3 * uPlot.pxRatio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    caption(u, line.label, x + 4 * uPlot.pxRatio, bbox.left + bbox.width - x, colours.text, colours);
  }
  ctx.restore();
}

/** A word at the top of the plot, on a ground of its own so that it is read over whatever is behind it. */
function caption(u: uPlot, label: string, x: number, room: number, colour: string, colours: Colours): void {
  if (!label) return;
  const { ctx, bbox } = u;
  const size = 12 * uPlot.pxRatio;
  ctx.font = `${size}px ${colours.font}`;
  const width = ctx.measureText(label).width;
  if (width > room) return;
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  ctx.fillStyle = colours.surface;
  ctx.fillRect(x - 2, bbox.top + 2, width + 4, size + 4);
  ctx.fillStyle = colour;
  ctx.fillText(label, x, bbox.top + 4);
}
