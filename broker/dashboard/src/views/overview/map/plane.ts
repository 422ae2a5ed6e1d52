// SPDX-License-Identifier: Apache-2.0
// Degrees on the globe as points of a plane, north up.

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Place {
  readonly latitude: number;
  readonly longitude: number;
}

/** Equirectangular projection around the middle latitude; unlike Mercator's it does not enlarge the north. */
export function projected(places: readonly Place[]): Point[] {
  if (places.length === 0) return [];
  const west = westernmost(places.map((place) => place.longitude));
  const latitudes = places.map((place) => place.latitude);
  const middle = (Math.min(...latitudes) + Math.max(...latitudes)) / 2;
  const narrow = Math.cos((middle * Math.PI) / 180);
  return places.map(({ latitude, longitude }) => ({ x: ((longitude - west + 360) % 360) * narrow, y: -latitude }));
}

/** Where a map begins that tears no network apart at the date line: east of the widest gap between longitudes. */
function westernmost(longitudes: readonly number[]): number {
  const sorted = [...longitudes].sort((a, b) => a - b);
  let [begin, widest] = [sorted[0] ?? 0, 360 - ((sorted.at(-1) ?? 0) - (sorted[0] ?? 0))];
  for (const [index, longitude] of sorted.entries()) {
    const gap = longitude - (sorted[index - 1] ?? longitude);
    if (gap > widest) [begin, widest] = [longitude, gap];
  }
  return begin;
}

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export function boxOf(points: readonly Point[]): Box {
  const [xs, ys] = [points.map((point) => point.x), points.map((point) => point.y)];
  if (points.length === 0) return { left: 0, top: 0, width: 0, height: 0 };
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  return { left, top, width: Math.max(...xs) - left, height: Math.max(...ys) - top };
}
