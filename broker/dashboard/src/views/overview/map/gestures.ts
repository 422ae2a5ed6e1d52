// SPDX-License-Identifier: Apache-2.0
// Gestures on the map: the wheel zooms, a drag pans. A click without a drag remains a click on what is there.
import type { Point } from "./plane";

export interface Movable {
  zoomed: (factor: number, around: Point) => void;
  /** By pixels. */
  shifted: (dx: number, dy: number) => void;
  /** Is the whole network seen? Then a wheel that turns away belongs to the page. */
  whole: () => boolean;
}

const WHEEL_STEP = 1.0018; // as in the plots: a notch, 100 units, is a fifth
const DRAG_LEAST_PX = 4;

/** Listens to `area` until the returned function is called. */
export function gestures(area: SVGSVGElement, map: () => Movable): () => void {
  const stop = new AbortController();
  const { signal } = stop;

  const onWheel = (event: WheelEvent): void => {
    if (event.deltaY > 0 && map().whole()) return;
    event.preventDefault();
    const { left, top } = area.getBoundingClientRect();
    map().zoomed(WHEEL_STEP ** -event.deltaY, { x: event.clientX - left, y: event.clientY - top });
  };

  const onDown = (event: PointerEvent): void => {
    if (event.button !== 0 || !event.isPrimary) return;
    const drag = new AbortController();
    let [x, y, far] = [event.clientX, event.clientY, false];
    const onMove = (next: PointerEvent): void => {
      if (!far && Math.hypot(next.clientX - x, next.clientY - y) < DRAG_LEAST_PX) return;
      // Not earlier: capturing the pointer also takes the click from the link beneath.
      if (!far) area.setPointerCapture(event.pointerId);
      far = true;
      map().shifted(next.clientX - x, next.clientY - y);
      [x, y] = [next.clientX, next.clientY];
    };
    area.addEventListener("pointermove", onMove, { signal: drag.signal });
    for (const end of ["pointerup", "pointercancel", "pointerleave"] as const)
      area.addEventListener(end, () => drag.abort(), { signal: drag.signal });
  };

  area.addEventListener("wheel", onWheel, { passive: false, signal });
  area.addEventListener("pointerdown", onDown, { signal });
  area.addEventListener("dragstart", (event) => event.preventDefault(), { signal }); // of a link as a thing to drop elsewhere
  return () => stop.abort();
}
