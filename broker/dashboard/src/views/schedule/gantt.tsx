// SPDX-License-Identifier: Apache-2.0
// The schedule as a picture: a row for each transfer, time to the right, the booked rate as height.
import { type KeyboardEvent, useCallback, useId, useMemo, useRef, useState } from "react";
import { to } from "../../addresses";
import { Canvas, type Surface } from "../../plot/canvas";
import { moved, zoomed } from "../../plot/gestures";
import { navigate } from "../../router";
import "./gantt.css";
import { floorOf, type Place, scrollTo, type Viewport, visibleLines, xOf } from "./geometry";
import { centreOf, revealing, walked } from "./keys";
import { paint } from "./paint";
import type { Line, Row } from "./rows";
import { spoken, Tip } from "./tip";
import { usePointer } from "./use-pointer";
import type { Shown } from "./use-range";
import { keyOf, useScroll } from "./use-scroll";

interface GanttProps {
  /** For readers of the screen: what is drawn, in a sentence. */
  label: string;
  /** Keep the same array (useMemo) while nothing has changed. */
  lines: readonly Line[];
  time: Shown;
  /** The rate that fills a row; undefined: each row has its own. */
  scale: number | undefined;
  /** Such as "30rem". */
  height: string;
}

const ROW_REM = 2;
const TALL_ROW_REM = 4; // where there is room
const AXIS_REM = 2.9;
const GUTTER_REM = 18;
const GUTTER_SHARE = 0.3;
const KEY_MOVE = 0.2;
const KEY_ZOOM = 0.6;

export function Gantt({ label, lines, time, scale, height }: GanttProps) {
  const { range, now } = time;
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0, rem: 14 });
  const [focus, setFocus] = useState<{ key: string; step: number } | undefined>();
  const [focused, setFocused] = useState(false);
  const helpId = useId();
  const rowPx = rowHeight(size.height, lines.length, size.rem);
  const scroll = useScroll(box, lines, rowPx);
  const view: Viewport = useMemo(() => {
    const { width, height: tall, rem } = size;
    return {
      range,
      width,
      height: tall,
      gutter: Math.min(GUTTER_REM * rem, width * GUTTER_SHARE),
      axis: AXIS_REM * rem,
      rowPx,
      scroll,
    };
  }, [range[0], range[1], size, rowPx, scroll]);
  const open = useCallback((row: Row) => navigate(to.transfer(row.id)), []);
  const { hover, handlers } = usePointer(box, view, lines, time.show, open);

  const place = useMemo(() => placeOf(lines, focus), [lines, focus]);
  const shownFocus = focused ? place : undefined;
  const draw = useCallback(
    (context: CanvasRenderingContext2D, surface: Surface) =>
      paint(context, surface, { view, lines, now, scale, focus: shownFocus, hover, rem: size.rem }),
    [view, lines, now, scale, shownFocus, hover, size.rem],
  );
  const onSize = useCallback((width: number, tall: number) => {
    setSize({ width, height: tall, rem: Number.parseFloat(getComputedStyle(document.documentElement).fontSize) });
  }, []);

  const go = (next: Place): void => {
    const line = lines[next.line];
    if (line?.is !== "row") return;
    setFocus({ key: line.row.key, step: next.step });
    box.current?.scrollTo({ top: scrollTo(view, next.line) });
    const wanted = revealing(range, line.row, next.step);
    if (wanted[0] !== range[0]) time.show(wanted);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [first, last] = visibleLines(view, lines.length);
    const next = event.shiftKey ? undefined : walked(lines, place, event.key, last - first - 1, range);
    const row = place && rowAt(lines, place.line);
    if (next) go(next);
    else if (event.key === "Enter" && row) open(row);
    else if (event.key === "Escape" && focus) setFocus(undefined);
    else if (!onTimeKey(event.key, time, centreOf(range, row, place?.step ?? -1))) return;
    event.preventDefault();
  };

  const pointed = hover ?? shownFocus;
  const row = pointed && rowAt(lines, pointed.line);
  const said = shownFocus && rowAt(lines, shownFocus.line);
  return (
    <div ref={box} className="gantt" style={{ height }}>
      <div style={{ height: lines.length * rowPx + view.axis }}>
        <div className="gantt-screen" style={{ height }}>
          <Canvas
            label={label}
            role="application"
            aria-roledescription="schedule"
            aria-describedby={helpId}
            height={height}
            draw={draw}
            onSize={onSize}
            tabIndex={0}
            className={hover ? "pointed" : undefined}
            onKeyDown={onKeyDown}
            onFocus={() => setFocused(true)}
            onBlur={() => setFocused(false)}
            {...handlers}
          >
            {row && pointed && (
              <Tip
                row={row}
                step={pointed.step}
                x={hover?.x ?? focusX(view, row, pointed.step)}
                y={floorOf(view, pointed.line)}
                width={view.width}
                height={view.height}
              />
            )}
          </Canvas>
          <p id={helpId} className="unseen">
            Up and down go between transfers, left and right between the steps of one, Enter opens it. Plus and minus zoom, shift
            with left and right moves in time, N goes to now. The tab Table has the same as text.
          </p>
          <p className="unseen" aria-live="polite">
            {said && shownFocus && spoken(said, shownFocus.step)}
          </p>
        </div>
      </div>
    </div>
  );
}

function onTimeKey(key: string, { range, show, follow }: Shown, centre: number): boolean {
  const length = range[1] - range[0];
  if (key === "+" || key === "=") show(zoomed(range, KEY_ZOOM, centre, undefined));
  else if (key === "-") show(zoomed(range, 1 / KEY_ZOOM, centre, undefined));
  else if (key === "ArrowLeft") show(moved(range, -length * KEY_MOVE, undefined));
  else if (key === "ArrowRight") show(moved(range, length * KEY_MOVE, undefined));
  else if (key === "n" || key === "N") follow(Math.round(length));
  else return false;
  return true;
}

function rowHeight(height: number, lines: number, rem: number): number {
  const room = (height - AXIS_REM * rem) / Math.max(1, lines);
  return Math.round(Math.max(ROW_REM * rem, Math.min(TALL_ROW_REM * rem, Math.floor(room))));
}

function rowAt(lines: readonly Line[], index: number): Row | undefined {
  const line = lines[index];
  return line?.is === "row" ? line.row : undefined;
}

function placeOf(lines: readonly Line[], focus: { key: string; step: number } | undefined): Place | undefined {
  const line = focus ? lines.findIndex((one) => keyOf(one) === focus.key) : -1;
  return focus && line >= 0 ? { line, step: focus.step } : undefined;
}

function focusX(view: Viewport, row: Row, step: number): number {
  return Math.max(view.gutter, Math.min(view.width, xOf(view, row.begins[step] ?? view.range[0])));
}
