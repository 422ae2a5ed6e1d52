// SPDX-License-Identifier: Apache-2.0
// Several step functions over one common x, as a plot needs them. Value i holds from x[i] to x[i + 1].

export interface StepFunction {
  x: ArrayLike<number>;
  values: ArrayLike<number>;
}

export interface Aligned {
  x: Float64Array;
  values: Float64Array[];
}

/** Before its first change point a function is unknown: NaN. A function with an x twice takes the later value. */
export function align(functions: readonly StepFunction[]): Aligned {
  const x = union(functions.map((one) => one.x));
  return { x, values: functions.map((one) => resampled(one, x)) };
}

function union(all: readonly ArrayLike<number>[]): Float64Array {
  const every = new Float64Array(all.reduce((sum, one) => sum + one.length, 0));
  let end = 0;
  for (const one of all) {
    every.set(one, end);
    end += one.length;
  }
  every.sort();
  let kept = 0;
  for (let i = 0; i < every.length; i += 1) {
    if (i === 0 || every[i] !== every[i - 1]) every[kept++] = every[i]!;
  }
  return every.slice(0, kept);
}

function resampled({ x: own, values }: StepFunction, x: Float64Array): Float64Array {
  const out = new Float64Array(x.length);
  let next = 0;
  let value = Number.NaN;
  for (let i = 0; i < x.length; i += 1) {
    while (next < own.length && own[next]! <= x[i]!) value = values[next++]!;
    out[i] = value;
  }
  return out;
}

/** The index of the step that holds at `time`: the last one that begins no later. -1 before the first. */
export function stepAt(x: ArrayLike<number>, time: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
