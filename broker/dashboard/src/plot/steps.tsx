// SPDX-License-Identifier: Apache-2.0
// Step functions over time: gamma(t), what is booked, what was measured.
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import type { Unit } from "./axes";
import { useColours } from "./colours";
import type { Range } from "./gestures";
import { Handle } from "./handle";
import type { Band, Line } from "./painting";
import "./plot.css";
import { type Hover, type Series, type Shown, StepsPlot } from "./steps-plot";

export type { Band, Hover, Range, Series };

export interface MovableLine extends Line {
  /** With it the line can be dragged, and moved with the arrow keys. `done` when the hand lets go. */
  onMove?: (time: number, done: boolean) => void;
}

export interface StepsProps {
  /** For readers of the screen: what is drawn, in a sentence. */
  label: string;
  /** Change points in seconds since 1970, ascending. Keep the same array (useMemo) while nothing has changed. */
  x: Float64Array;
  /** As with x: the same array while nothing has changed. */
  series: readonly Series[];
  range: Range;
  /** How far one can go; the last step holds until its end. */
  bounds?: Range;
  onRange?: (range: Range) => void;
  onHover?: (hover: Hover | null) => void;
  onSelect?: (from: number, to: number) => void;
  unit?: Unit;
  /** Such as "20rem". */
  height?: string;
  bands?: readonly Band[];
  lines?: readonly MovableLine[];
}

const NO_BANDS: readonly Band[] = [];
const NO_LINES: readonly MovableLine[] = [];

export function Steps(props: StepsProps) {
  const {
    label,
    x,
    series,
    range,
    bounds,
    onRange,
    onHover,
    onSelect,
    unit = "bps",
    height = "22rem",
    bands = NO_BANDS,
    lines = NO_LINES,
  } = props;
  const colours = useColours();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<StepsPlot | undefined>(undefined);
  const helpId = useId();
  const [view, setView] = useState<Range>(range);
  const movable = lines.some((line) => line.onMove);
  const shown: Shown = {
    x,
    series,
    unit,
    colours,
    bands,
    lines,
    bounds,
    onHover,
    onRange,
    onSelect,
    onView: movable ? setView : undefined,
  };
  const latest = useRef({ shown, range });
  latest.current = { shown, range };

  // Another set of lines is another plot; new values for the same lines are not.
  const structure = useMemo(
    () => JSON.stringify([unit, series.map(({ key, stack, fill, width, dash }) => [key, stack, fill, width, dash])]),
    [unit, series],
  );
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const made = new StepsPlot(element, latest.current.shown, latest.current.range);
    plot.current = made;
    const resized = new ResizeObserver(() => made.resize());
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.current = undefined;
      made.destroy();
    };
  }, [structure]);
  useEffect(() => {
    plot.current?.update(latest.current.shown);
  }, [x, series, colours, bands, lines, bounds, onHover, onRange, onSelect]);
  useEffect(() => {
    plot.current?.setRange([range[0], range[1]]);
    setView([range[0], range[1]]);
  }, [range[0], range[1]]);

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target === event.currentTarget && !event.ctrlKey && !event.metaKey && !event.altKey && plot.current?.key(event.key))
      event.preventDefault();
  };
  return (
    <div className="steps" style={{ height }}>
      <div
        ref={box}
        className="steps-box"
        role="application"
        aria-roledescription="plot"
        aria-label={label}
        aria-describedby={helpId}
        tabIndex={0}
        onKeyDown={onKeyDown}
      />
      <p id={helpId} className="unseen">
        Plus and minus zoom, arrow keys move, Home shows everything, brackets go to the change before and after.
      </p>
      {movable &&
        plot.current &&
        lines.map(
          (line) => line.onMove && <Handle key={line.label} line={line} onMove={line.onMove} u={plot.current!.u} view={view} />,
        )}
    </div>
  );
}
