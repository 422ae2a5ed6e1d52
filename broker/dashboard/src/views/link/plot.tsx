// SPDX-License-Identifier: Apache-2.0
// The plot of a link: a stack of bookings below the line of capacity. A click holds an instant; shift and drag select a window.
import { type KeyboardEvent, type MouseEvent, type PointerEvent, useCallback, useMemo, useRef, useState } from "react";
import type { Window } from "../../api/types";
import { seconds } from "../../format/time";
import { useNow } from "../../format/use-now";
import { type Band, type Hover, type MovableLine, type Range, Steps } from "../../plot/steps";
import type { By } from "./layers";
import { Legend } from "./legend";
import { Moment } from "./moment";
import type { Known } from "./use-picture";

interface PlotProps {
  name: string;
  known: Known;
  windows: readonly Window[];
  range: Range;
  by: By;
  /** The instant that is held, if any. */
  held: number | null;
  onHold: (time: number | null) => void;
  onRange: (range: Range) => void;
  /** Back to following time. */
  onReset: () => void;
  /** Somebody who may make a window has picked its time. */
  onPick: ((range: Range) => void) | undefined;
}

const NOW_MS = 5_000;
const STILL_PX = 4; // a hand that clicks trembles
const TONES: Record<string, string> = { maintenance: "warn", outage: "bad", background: "idle" };

export function Plot({ name, known, windows, range, by, held, onHold, onRange, onReset, onPick }: PlotProps) {
  const [hovered, setHovered] = useState<number | null>(null);
  const pressed = useRef<{ x: number; y: number } | undefined>(undefined);
  const down = useRef(false);
  const now = seconds(useNow(NOW_MS));
  // While the hand moves the plot, frames are for drawing.
  const onHover = useCallback((hover: Hover | null) => !down.current && setHovered(hover?.time ?? null), []);
  const bands = useMemo(() => windows.map(bandOf), [windows]);
  const lines = useMemo((): MovableLine[] => {
    const present = { at: now, label: "now", colour: "accent" };
    return held === null ? [present] : [present, { at: held, label: "held", colour: "text" }];
  }, [now, held]);
  const bounds = useMemo((): Range => boundsAround(range), [range]);
  const pick = useMemo(() => onPick && ((from: number, to: number) => onPick([from, to])), [onPick]);

  const onDown = (event: PointerEvent): void => {
    pressed.current = { x: event.clientX, y: event.clientY };
    down.current = true;
  };
  const onUp = (): void => {
    down.current = false;
  };
  const onClick = (event: MouseEvent): void => {
    const from = pressed.current;
    const still = from && Math.hypot(event.clientX - from.x, event.clientY - from.y) < STILL_PX;
    if (still && !event.shiftKey && hovered !== null) onHold(hovered);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Home") onReset();
    else if (event.key === "Enter" && hovered !== null) onHold(hovered);
    else if (event.key === "Escape" && held !== null) onHold(null);
    else return;
    event.preventDefault();
    event.stopPropagation(); // Home would show all of time
  };
  const moment = held ?? hovered ?? now;
  return (
    <div className="link-plot">
      <div className="stack">
        {/* biome-ignore lint/a11y/noStaticElementInteractions: the plot inside has the role and the focus. */}
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: Enter does the same, in onKey. */}
        <div onPointerDownCapture={onDown} onPointerUp={onUp} onPointerCancel={onUp} onClick={onClick} onKeyDownCapture={onKey}>
          <Steps
            label={`Capacity of ${name}, what is booked of it and what was measured. Enter holds the instant of the cursor; the table says the same in words.`}
            x={known.x}
            series={known.series}
            range={range}
            bounds={bounds}
            onRange={onRange}
            onHover={onHover}
            {...(pick && { onSelect: pick })}
            height="max(24rem, 45vh)"
            bands={bands}
            lines={lines}
          />
        </div>
        <Legend known={known} />
        <p className="muted">
          Wheel zooms, drag moves, a click holds an instant{onPick && ", shift and drag pick the time of a new window"}. With the
          keyboard: + − arrows, brackets for the changes, Enter to hold, Home to go back.
        </p>
      </div>
      <Moment
        known={known}
        by={by}
        time={moment}
        title={held !== null ? "Held" : hovered !== null ? "At the pointer" : "Now"}
        onLetGo={held === null ? undefined : () => onHold(null)}
      />
    </div>
  );
}

function bandOf({ begin, end, kind, reason }: Window): Band {
  return {
    from: seconds(begin),
    to: seconds(end),
    label: reason ? `${kind}: ${reason}` : kind,
    colour: TONES[kind] ?? "warn",
    pattern: kind !== "background",
  };
}

const YEAR = 366 * 86_400;

/** No hand gets lost in time, however far it has gone already. */
function boundsAround([from, to]: Range): Range {
  const year = Math.floor((from + to) / 2 / YEAR);
  return [(year - 2) * YEAR, (year + 3) * YEAR];
}
