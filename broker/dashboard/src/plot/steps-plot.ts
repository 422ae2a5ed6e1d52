// SPDX-License-Identifier: Apache-2.0
// A uPlot of step functions that is told what to show and drawn at most once a frame. Knows nothing of React.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { stepAt } from "./align";
import { axes, type Unit } from "./axes";
import type { Colours } from "./colours";
import { gestures, keyed, type Range, within } from "./gestures";
import { type Band, type Line, paintBands, paintLines, stepPaths } from "./painting";
import { stacked } from "./stack";

export interface Series {
  key: string;
  label: string;
  /** As many as x: values[i] holds from x[i] to x[i + 1]; NaN where nothing is known. */
  values: Float64Array;
  /** A token such as "accent" or "series-3", or any colour. */
  colour: string;
  /** On top of the stacked series before it. */
  stack?: boolean;
  fill?: boolean;
  /** In CSS pixels; 0 for none. */
  width?: number;
  dash?: readonly number[];
}

export interface Hover {
  time: number;
  /** Of the step that holds at `time`; -1 before the first. */
  index: number;
  /** In CSS pixels, from the corner of the plot. */
  x: number;
  y: number;
}

export interface Shown {
  x: Float64Array;
  series: readonly Series[];
  unit: Unit;
  colours: Colours;
  bands: readonly Band[];
  lines: readonly Line[];
  bounds: Range | undefined;
  onHover: ((hover: Hover | null) => void) | undefined;
  onRange: ((range: Range) => void) | undefined;
  onSelect: ((from: number, to: number) => void) | undefined;
  /** Every frame in which the range is another: for what is laid over the plot. */
  onView: ((range: Range) => void) | undefined;
}

const SETTLE_MS = 120; // the URL and the server hear of a range when the hand rests
const HEADROOM = 1.08;

export class StepsPlot {
  readonly u: uPlot;
  private range: Range;
  private sumsOf: readonly Series[] | undefined;
  private sums: readonly Series[] = [];
  private highest = 0;
  private frame = 0;
  private settle: ReturnType<typeof setTimeout> | undefined;
  private readonly stop: () => void;

  constructor(
    private readonly box: HTMLElement,
    private shown: Shown,
    range: Range,
  ) {
    this.range = range;
    const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.u = new uPlot(
      {
        width: box.clientWidth,
        height: box.clientHeight,
        scales: { x: { time: true, auto: false, range: () => [...this.range] }, y: { auto: false, range: () => [0, this.top()] } },
        series: [{}, ...drawOrder(shown.series).map((series) => this.seriesOf(series))],
        axes: axes(shown.unit, () => this.shown.colours, rem),
        legend: { show: false },
        cursor: { drag: { x: false, y: false, setScale: false }, points: { show: false }, y: false },
        hooks: {
          drawClear: [(u) => paintBands(u, this.shown.bands, this.shown.colours)],
          draw: [(u) => paintLines(u, this.shown.lines, this.shown.colours)],
          setCursor: [() => this.hover()],
        },
      },
      this.data(),
      box,
    );
    this.stop = gestures(this.u.over, () => ({
      range: () => this.range,
      bounds: () => this.shown.bounds,
      timeAt: (px) => this.u.posToVal(px, "x"),
      show: (next) => this.show(next),
      select: this.shown.onSelect && ((from, to, done) => this.select(from, to, done)),
    }));
  }

  /** New data or colours for the same series; another set of series is another plot. */
  update(shown: Shown): void {
    const before = this.shown;
    this.shown = shown;
    if (before.x !== shown.x || before.series !== shown.series) this.u.setData(this.data(), false);
    this.redraw();
  }

  /** From outside: a range in the URL, a button. Not while a hand moves the plot. */
  setRange(range: Range): void {
    if (this.settle === undefined && (range[0] !== this.range[0] || range[1] !== this.range[1])) this.show(range, false);
  }

  resize(): void {
    this.u.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
  }

  /** True when the key was the plot's. */
  key(key: string): boolean {
    if (key === "[" || key === "]") {
      this.step(key === "]" ? 1 : -1);
      return true;
    }
    const range = keyed(key, this.range, this.shown.bounds);
    if (range) this.show(range);
    return range !== undefined;
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.settle);
    this.stop();
    this.u.destroy();
  }

  private show(range: Range, tell = true): void {
    this.range = within(range, this.shown.bounds);
    this.redraw();
    if (!tell) return;
    clearTimeout(this.settle);
    this.settle = setTimeout(() => {
      this.settle = undefined;
      this.shown.onRange?.(this.range);
    }, SETTLE_MS);
  }

  private redraw(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.u.batch(() => {
        this.u.setScale("x", { min: this.range[0], max: this.range[1] });
        this.u.setScale("y", { min: 0, max: this.top() });
        this.u.redraw(true, true);
      });
      this.shown.onView?.(this.range);
    });
  }

  private select(from: number, to: number, done: boolean): void {
    const [left, right] = [this.u.valToPos(from, "x"), this.u.valToPos(to, "x")];
    this.u.setSelect({ left, top: 0, width: done ? 0 : right - left, height: this.u.over.clientHeight }, false);
    if (done) this.shown.onSelect?.(from, to);
  }

  private hover(): void {
    const { left = -1, top = -1 } = this.u.cursor;
    if (left < 0) {
      this.shown.onHover?.(null);
      return;
    }
    const time = this.u.posToVal(left, "x");
    this.shown.onHover?.({
      time,
      index: stepAt(this.shown.x, time),
      x: left + this.u.over.offsetLeft,
      y: top + this.u.over.offsetTop,
    });
  }

  /** The cursor to the next change point, for those who have no pointer. */
  private step(by: 1 | -1): void {
    const { x } = this.shown;
    const left = this.u.cursor.left ?? -1;
    const time = left < 0 ? this.range[0] : this.u.posToVal(left, "x");
    const at = stepAt(x, time);
    const next = x[by > 0 ? at + 1 : Math.max(0, x[at] === time ? at - 1 : at)];
    if (next === undefined) return;
    if (next < this.range[0] || next > this.range[1])
      this.show([next - (this.range[1] - this.range[0]) / 2, next + (this.range[1] - this.range[0]) / 2]);
    // A pixel behind the change, where the new value holds.
    this.u.setCursor({ left: this.u.valToPos(next, "x") + (by > 0 ? 1 : -1), top: this.u.over.clientHeight / 2 });
  }

  private data(): uPlot.AlignedData {
    return [this.shown.x, ...drawOrder(this.summed()).map((series) => series.values)];
  }

  /** The largest value there is, also outside of what is seen: the height stays while the hand moves the plot. */
  private top(): number {
    this.summed();
    return (this.highest || 1) * HEADROOM;
  }

  /** Stacked series as sums, reckoned once for each set of data. */
  private summed(): readonly Series[] {
    if (this.sumsOf !== this.shown.series) {
      this.sumsOf = this.shown.series;
      this.sums = withSums(this.shown.series);
      this.highest = this.sums.reduce((most, { values }) => Math.max(most, largest(values)), 0);
    }
    return this.sums;
  }

  private seriesOf({ key, label, colour, stack, fill, width = 1.5, dash }: Series): uPlot.Series {
    const own = (): string => this.shown.colours.of(this.shown.series.find((series) => series.key === key)?.colour ?? colour);
    return {
      label,
      auto: false,
      stroke: own,
      width: stack ? 0 : width,
      fill: stack || fill ? own : undefined,
      dash: dash ? [...dash] : undefined,
      paths: stepPaths(!stack && width > 0, Boolean(stack || fill), () => this.shown.bounds?.[1]),
      points: { show: false },
    };
  }
}

/** Stacked series from the top of the stack down, so that each is painted over the one above it; then the lines. */
function drawOrder<S extends { stack?: boolean }>(series: readonly S[]): S[] {
  return [...series.filter((one) => one.stack).reverse(), ...series.filter((one) => !one.stack)];
}

function withSums(series: readonly Series[]): Series[] {
  const sums = stacked(series.filter((one) => one.stack).map((one) => one.values));
  return series.map((one) => (one.stack ? { ...one, values: sums.shift() ?? one.values } : one));
}

function largest(values: Float64Array): number {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}
