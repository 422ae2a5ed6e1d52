// SPDX-License-Identifier: Apache-2.0
import { exact } from "../../format/units";
import { Tag } from "../../ui";
import { difference, type Measure } from "./measures";

/** A figure as people read it, the exact one on hover. */
export function FigureOf<T>({ measure, value }: { measure: Measure<T>; value: number | null }) {
  return value === null ? "–" : <span title={exact(value)}>{measure.show(value)}</span>;
}

/** From `before` to `after`, and whether that is better. */
export function DifferenceOf<T>({ measure, before, after }: { measure: Measure<T>; before: number | null; after: number | null }) {
  const found = difference(measure, before, after);
  if (!found) return "–";
  return found.tone === "plain" ? found.words : <Tag tone={found.tone}>{found.words}</Tag>;
}
