// SPDX-License-Identifier: Apache-2.0
// Stacks series, and folds many of them into a few and "others".

/** Running sums: the first series is at the bottom. NaN counts as 0. */
export function stacked(values: readonly Float64Array[]): Float64Array[] {
  const sums: Float64Array[] = [];
  for (const layer of values) {
    const below = sums.at(-1);
    const sum = new Float64Array(layer.length);
    for (let i = 0; i < layer.length; i += 1) {
      const value = layer[i]!;
      sum[i] = (below ? below[i]! : 0) + (Number.isNaN(value) ? 0 : value);
    }
    sums.push(sum);
  }
  return sums;
}

export interface Named {
  key: string;
  label: string;
  values: Float64Array;
}

/** The `count` series with the largest area over `x`, and one more, "others", with the sum of the rest when there is one. */
export function top(series: readonly Named[], count: number, x: ArrayLike<number>): Named[] {
  const ranked = series.map((one) => ({ one, area: area(one.values, x) })).sort((a, b) => b.area - a.area);
  const kept = ranked.slice(0, count).map(({ one }) => one);
  const rest = ranked.slice(count).map(({ one }) => one);
  if (rest.length === 0) return kept;
  const values = stacked(rest.map((one) => one.values)).at(-1)!;
  return [...kept, { key: "others", label: `${rest.length} others`, values }];
}

function area(values: ArrayLike<number>, x: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i + 1 < values.length; i += 1) {
    const value = values[i]!;
    if (!Number.isNaN(value)) sum += value * (x[i + 1]! - x[i]!);
  }
  return sum;
}
