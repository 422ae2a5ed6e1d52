// SPDX-License-Identifier: Apache-2.0
// Decimates a step function for the screen. Of all change points in one column of pixels it draws the first value, the smallest,
// the largest and the last: the same picture from at most four points for each column.

/** Pixels of x = 0 and of one second; of the value 0 and of one bit/s. */
export interface Mapping {
  x0: number;
  xScale: number;
  y0: number;
  yScale: number;
}

export interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  /** Several changes between two pixels: everything from y `low` to `high` is touched. The pen goes on at `right`. */
  column(left: number, right: number, low: number, high: number): void;
  /** An unbroken run of steps ends here. */
  end(x: number): void;
}

/** Draws the steps from index `begin` up to and without `end`; the last holds until pixel `right`. NaN lifts the pen. */
export function drawSteps(
  x: ArrayLike<number>,
  y: ArrayLike<number>,
  [begin, end]: readonly [number, number],
  right: number,
  map: Mapping,
  pen: Pen,
): void {
  const { x0, xScale, y0, yScale } = map;
  let down = false;
  let out = 0; // y of the step that holds
  // The column that is being gathered: its first change, its end, and what was there.
  let changes = 0;
  let at = 0;
  let until = 0;
  let entry = 0;
  let low = 0;
  let high = 0;

  const flush = (): void => {
    if (changes === 0) return;
    pen.lineTo(at, entry);
    if (changes > 1) pen.column(at, until, low, high);
    pen.lineTo(changes > 1 ? until : at, out);
    changes = 0;
  };
  const lift = (px: number): void => {
    flush();
    pen.lineTo(px, out);
    pen.end(px);
    down = false;
  };

  for (let i = begin; i < end; i += 1) {
    const value = y[i]!;
    const py = y0 + value * yScale;
    if (py === out && down) continue;
    const px = x0 + x[i]! * xScale;
    if (Number.isNaN(value)) {
      if (down) lift(px);
    } else if (!down) {
      pen.moveTo(px, py);
      down = true;
      out = py;
    } else {
      if (changes === 0 || px >= until) {
        flush();
        at = px;
        until = Math.floor(px) + 1;
        entry = low = high = out;
      }
      changes += 1;
      if (py < low) low = py;
      else if (py > high) high = py;
      out = py;
    }
  }
  if (down) lift(right);
}
