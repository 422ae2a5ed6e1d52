// SPDX-License-Identifier: Apache-2.0
// The pointer on the schedule: it moves the picture in time and along the rows, as one moves a map; the wheel zooms; a click opens.
import { type PointerEvent, type RefObject, useEffect, useRef, useState } from "react";
import { pointOf } from "../../plot/canvas";
import { moved, type Range, zoomed } from "../../plot/gestures";
import { type Place, placeAt, timeAt, type Viewport } from "./geometry";
import type { Line, Row } from "./rows";

const FAR_PX = 4; // a click trembles less
const WHEEL_STEP = 1.0018; // a notch of a wheel, 100 units, is a fifth

interface Pointed extends Place {
  x: number;
}

interface Drag {
  x: number;
  y: number;
  range: Range;
  top: number;
  far: boolean;
}

export function usePointer(
  box: RefObject<HTMLElement | null>,
  view: Viewport,
  lines: readonly Line[],
  show: (range: Range) => void,
  open: (row: Row) => void,
) {
  const [hover, setHover] = useState<Pointed | undefined>();
  const drag = useRef<Drag | undefined>(undefined);
  useWheel(box, view, show);

  const onPointerDown = (event: PointerEvent<HTMLCanvasElement>): void => {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    drag.current = { ...pointOf(event), range: view.range, top: box.current?.scrollTop ?? 0, far: false };
  };
  const onPointerMove = (event: PointerEvent<HTMLCanvasElement>): void => {
    const { x, y } = pointOf(event);
    const held = drag.current;
    if (!held) {
      const place = placeAt(view, lines, x, y);
      setHover(place && { ...place, x });
      return;
    }
    held.far ||= Math.hypot(x - held.x, y - held.y) > FAR_PX;
    if (!held.far) return;
    setHover(undefined);
    box.current?.scrollTo({ top: held.top - (y - held.y) });
    const length = held.range[1] - held.range[0];
    if (x !== held.x) show(moved(held.range, ((held.x - x) / (view.width - view.gutter)) * length, undefined));
  };
  const onPointerUp = (event: PointerEvent<HTMLCanvasElement>): void => {
    const held = drag.current;
    drag.current = undefined;
    if (!held || held.far) return;
    const { x, y } = pointOf(event);
    const line = lines[placeAt(view, lines, x, y)?.line ?? -1];
    if (line?.is === "row") open(line.row);
  };
  const onPointerCancel = (): void => {
    drag.current = undefined;
  };
  const onPointerLeave = (): void => setHover(undefined);
  // What was under the pointer may have gone, or moved away.
  const there = hover && lines[hover.line]?.is === "row" ? hover : undefined;
  return { hover: there, handlers: { onPointerDown, onPointerMove, onPointerUp, onPointerCancel, onPointerLeave } };
}

/**
 * The wheel zooms over the plot and scrolls over the names. Native listeners, because React's are passive: the page would scroll.
 */
function useWheel(box: RefObject<HTMLElement | null>, view: Viewport, show: (range: Range) => void): void {
  const latest = useRef({ view, show });
  latest.current = { view, show };
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const onWheel = (event: WheelEvent): void => {
      const { view: seen, show: change } = latest.current;
      const x = event.clientX - element.getBoundingClientRect().left;
      if (x < seen.gutter && !event.ctrlKey) return;
      event.preventDefault();
      const [from, until] = seen.range;
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
        change(moved(seen.range, (event.deltaX / seen.width) * (until - from), undefined));
      else change(zoomed(seen.range, WHEEL_STEP ** event.deltaY, timeAt(seen, Math.max(x, seen.gutter)), undefined));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [box]);
}
