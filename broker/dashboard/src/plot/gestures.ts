// SPDX-License-Identifier: Apache-2.0
// Wheel, drag and keys on a plot, as changes of the visible range of time.

export type Range = readonly [from: number, to: number];

const LEAST_S = 0.001;

/** The range with `factor` of its length (below 1: nearer), where `around` stays at its place on the screen. */
export function zoomed([from, to]: Range, factor: number, around: number, bounds: Range | undefined): Range {
  const length = Math.max(LEAST_S, (to - from) * factor);
  const begin = around - ((around - from) / (to - from)) * length;
  return within([begin, begin + length], bounds);
}

export function moved([from, to]: Range, by: number, bounds: Range | undefined): Range {
  return within([from + by, to + by], bounds);
}

/** Not beyond `bounds`: moved back into them, and no longer than they are. */
export function within([from, to]: Range, bounds: Range | undefined): Range {
  if (!bounds) return [from, to];
  const length = Math.min(to - from, bounds[1] - bounds[0]);
  const begin = Math.min(Math.max(from, bounds[0]), bounds[1] - length);
  return [begin, begin + length];
}

export interface Gestured {
  range: () => Range;
  bounds: () => Range | undefined;
  /** Seconds at a pixel from the left edge. */
  timeAt: (px: number) => number;
  show: (range: Range) => void;
  /** With the shift key held: a stretch of time is being picked; `done` when the button is up. */
  select: ((from: number, to: number, done: boolean) => void) | undefined;
}

const WHEEL_STEP = 1.0018; // a notch of a wheel, 100 units, is a fifth
const MOVE_LEAST_PX = 3;

/** Listens to `area` until the returned function is called. */
export function gestures(area: HTMLElement, plot: () => Gestured): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  const leftOf = (event: MouseEvent): number => event.clientX - area.getBoundingClientRect().left;

  const onWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { range, bounds, timeAt, show } = plot();
    const [from, to] = range();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
      show(moved([from, to], (event.deltaX / area.clientWidth) * (to - from), bounds()));
    else show(zoomed([from, to], WHEEL_STEP ** event.deltaY, timeAt(leftOf(event)), bounds()));
  };

  const onDown = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const { range, bounds, timeAt, show, select } = plot();
    const start = leftOf(event);
    const [from, to] = range();
    const picks = event.shiftKey && select !== undefined;
    const origin = timeAt(start);
    const drag = new AbortController();
    let far = false;
    const onMove = (next: PointerEvent): void => {
      const by = leftOf(next) - start;
      far ||= Math.abs(by) > MOVE_LEAST_PX;
      if (!far) return;
      if (picks) select(Math.min(origin, timeAt(leftOf(next))), Math.max(origin, timeAt(leftOf(next))), false);
      else show(moved([from, to], (-by / area.clientWidth) * (to - from), bounds()));
    };
    const onUp = (last: PointerEvent): void => {
      drag.abort();
      if (picks && far) select(Math.min(origin, timeAt(leftOf(last))), Math.max(origin, timeAt(leftOf(last))), true);
    };
    area.setPointerCapture(event.pointerId);
    area.addEventListener("pointermove", onMove, { signal: drag.signal });
    for (const end of ["pointerup", "pointercancel"] as const) area.addEventListener(end, onUp, { signal: drag.signal });
  };

  area.addEventListener("wheel", onWheel, { passive: false, signal });
  area.addEventListener("pointerdown", onDown, { signal });
  return () => stop.abort();
}

const KEY_MOVE = 0.15;
const KEY_ZOOM = 0.7;

/** What a key makes of the range; undefined for keys that are not the plot's. */
export function keyed(key: string, range: Range, bounds: Range | undefined): Range | undefined {
  const length = range[1] - range[0];
  const middle = (range[0] + range[1]) / 2;
  switch (key) {
    case "ArrowLeft":
      return moved(range, -length * KEY_MOVE, bounds);
    case "ArrowRight":
      return moved(range, length * KEY_MOVE, bounds);
    case "+":
    case "=":
      return zoomed(range, KEY_ZOOM, middle, bounds);
    case "-":
      return zoomed(range, 1 / KEY_ZOOM, middle, bounds);
    case "Home":
      return bounds;
    default:
      return undefined;
  }
}
