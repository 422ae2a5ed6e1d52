// SPDX-License-Identifier: Apache-2.0
// Names beside dots, where there is room: greedy, the important ones first. What finds no room is not shown until one comes nearer.
import type { Box, Point } from "./plane";

export interface Wanted {
  key: string;
  /** Of what it names. */
  at: Point;
  text: string;
  /** Distance that it keeps from `at`. */
  radius: number;
}

export interface Label {
  key: string;
  text: string;
  /** Where its first letter begins, on the base line. */
  x: number;
  y: number;
}

const LETTER = 0.58; // mean width of a letter in font sizes; wide rather than narrow

/** `wanted`: the most important first. `screen`: what is seen. `taken`: dots that no name may hide. */
export function labelled(wanted: readonly Wanted[], fontPx: number, screen: Box, taken: readonly Box[] = []): Label[] {
  const boxes = [...taken];
  const labels: Label[] = [];
  for (const { key, at, text, radius } of wanted) {
    const [width, height] = [text.length * LETTER * fontPx, fontPx * 1.15];
    const spot = spots(at, width, height, radius).find((box) => inside(box, screen) && !boxes.some((other) => overlap(box, other)));
    if (!spot) continue;
    boxes.push(spot);
    labels.push({ key, text, x: spot.left, y: spot.top + fontPx * 0.9 });
  }
  return labels;
}

/** Right, left, above, below, and the corners. */
function spots({ x, y }: Point, width: number, height: number, radius: number): Box[] {
  const [right, left, above, below] = [x + radius, x - radius - width, y - radius - height, y + radius];
  const corner = 0.4 * radius; // nearer, as the dot is round
  const all: [number, number][] = [
    [right, y - height / 2],
    [left, y - height / 2],
    [x - width / 2, above],
    [x - width / 2, below],
    [right - corner, above + corner],
    [right - corner, below - corner],
    [left + corner, above + corner],
    [left + corner, below - corner],
  ];
  return all.map(([boxLeft, top]) => ({ left: boxLeft, top, width, height }));
}

const inside = (box: Box, screen: Box): boolean =>
  box.left >= screen.left &&
  box.top >= screen.top &&
  box.left + box.width <= screen.left + screen.width &&
  box.top + box.height <= screen.top + screen.height;

const overlap = (a: Box, b: Box): boolean =>
  a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
