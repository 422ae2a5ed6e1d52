// SPDX-License-Identifier: Apache-2.0
// The handle of a line that can be moved in time, such as a deadline on gamma(t).
import { type KeyboardEvent, type PointerEvent, useRef } from "react";
import type uPlot from "uplot";
import { local, utc } from "../format/time";
import type { Range } from "./gestures";
import type { Line } from "./painting";

interface HandleProps {
  line: Line;
  onMove: (time: number, done: boolean) => void;
  u: uPlot;
  /** What is seen of time. */
  view: Range;
}

const KEY_SHARE = 0.01; // of what is seen, for one press of an arrow key; ten times as much with shift

export function Handle({ line, onMove, u, view: [from, to] }: HandleProps) {
  const held = useRef(false);
  const share = (line.at - from) / (to - from);
  if (share < 0 || share > 1) return null;
  const { offsetLeft, offsetTop, clientWidth, clientHeight } = u.over;
  const timeAt = (event: PointerEvent): number => {
    const px = event.clientX - u.over.getBoundingClientRect().left;
    return from + Math.max(0, Math.min(1, px / clientWidth)) * (to - from);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const direction = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (direction === undefined) return;
    event.preventDefault();
    onMove(line.at + direction * (to - from) * KEY_SHARE * (event.shiftKey ? 10 : 1), true);
  };
  return (
    <div
      className="steps-handle"
      role="slider"
      tabIndex={0}
      aria-label={line.label}
      aria-orientation="horizontal"
      aria-valuemin={from}
      aria-valuemax={to}
      aria-valuenow={line.at}
      aria-valuetext={local(line.at)}
      title={`${line.label}: ${local(line.at)} · ${utc(line.at)}`}
      style={{ left: offsetLeft + share * clientWidth, top: offsetTop, height: clientHeight }}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        held.current = true;
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => held.current && onMove(timeAt(event), false)}
      onPointerUp={(event) => {
        if (held.current) onMove(timeAt(event), true);
        held.current = false;
      }}
    />
  );
}
