// SPDX-License-Identifier: Apache-2.0
// The visible part of the map, independent of the size of the screen, so that a URL shows everybody the same part.
import type { Box, Point } from "./plane";

export interface Sight {
  /** The point of the plane in the middle of the screen. */
  readonly x: number;
  readonly y: number;
  /** 1: the whole network just fits. */
  readonly zoom: number;
}

export interface Screen {
  readonly width: number;
  readonly height: number;
}

export interface Camera {
  readonly scale: number;
  /** Where the origin of the plane lies on the screen. */
  readonly origin: Point;
  toScreen: (point: Point) => Point;
  toPlane: (point: Point) => Point;
}

const NEAREST = 20;
const MARGIN = 0.09; // of the screen, for names at the edge

export const whole = (box: Box): Sight => ({ x: box.left + box.width / 2, y: box.top + box.height / 2, zoom: 1 });

export function cameraOf(sight: Sight, box: Box, screen: Screen): Camera {
  const room = (side: number): number => Math.max(1, side * (1 - 2 * MARGIN));
  const fits = Math.min(room(screen.width) / Math.max(box.width, 0.05), room(screen.height) / Math.max(box.height, 0.05));
  const scale = fits * sight.zoom;
  const origin = { x: screen.width / 2 - sight.x * scale, y: screen.height / 2 - sight.y * scale };
  return {
    scale,
    origin,
    toScreen: ({ x, y }) => ({ x: x * scale + origin.x, y: y * scale + origin.y }),
    toPlane: ({ x, y }) => ({ x: (x - origin.x) / scale, y: (y - origin.y) / scale }),
  };
}

/** `factor` above 1 is nearer; the point of the plane `around` stays where it is on the screen. */
export function zoomed(sight: Sight, factor: number, around: Point, box: Box): Sight {
  const zoom = Math.max(1, Math.min(NEAREST, sight.zoom * factor));
  const kept = sight.zoom / zoom;
  return within({ x: around.x + (sight.x - around.x) * kept, y: around.y + (sight.y - around.y) * kept, zoom }, box);
}

export const moved = (sight: Sight, dx: number, dy: number, box: Box): Sight =>
  within({ ...sight, x: sight.x + dx, y: sight.y + dy }, box);

/** The network never leaves the screen; all of it is always in the middle. */
function within({ x, y, zoom }: Sight, box: Box): Sight {
  const slack = (1 - 1 / zoom) / 2;
  const middle = whole(box);
  const kept = (value: number, around: number, size: number): number =>
    Math.max(around - size * slack, Math.min(around + size * slack, value));
  return { x: kept(x, middle.x, box.width), y: kept(y, middle.y, box.height), zoom };
}

/** In the URL: "0.512,0.333,2.5"; nothing for the whole network. */
export function written(sight: Sight): string {
  return sight.zoom <= 1.001 ? "" : [sight.x, sight.y, sight.zoom].map((value) => Number(value.toFixed(3))).join(",");
}

export function read(text: string, box: Box): Sight {
  const [x, y, zoom, ...rest] = text.split(",").map(Number);
  const good = [x, y, zoom].every((value) => value !== undefined && Number.isFinite(value)) && rest.length === 0;
  if (!good || text === "") return whole(box);
  return zoomed({ x: x ?? 0, y: y ?? 0, zoom: zoom ?? 1 }, 1, { x: x ?? 0, y: y ?? 0 }, box);
}
