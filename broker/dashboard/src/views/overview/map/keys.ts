// SPDX-License-Identifier: Apache-2.0
// Arrow keys move the focus to the nearest link in their direction.
import type { Point } from "./plane";

const WAYS: Record<string, Point> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
};

export const wayOf = (key: string): Point | undefined => WAYS[key];

/** The key of the nearest that lies within 60 degrees of the way; what lies aside counts as farther. */
export function nextOn(way: Point, from: Point, others: Iterable<readonly [string, Point]>): string | undefined {
  let [best, least] = [undefined as string | undefined, Number.POSITIVE_INFINITY];
  for (const [key, { x, y }] of others) {
    const [dx, dy] = [x - from.x, y - from.y];
    const ahead = dx * way.x + dy * way.y;
    const aside = Math.abs(dx * way.y - dy * way.x);
    if (ahead <= 0.5 || aside > ahead * Math.sqrt(3)) continue;
    const cost = ahead + 2 * aside;
    if (cost < least) [best, least] = [key, cost];
  }
  return best;
}
