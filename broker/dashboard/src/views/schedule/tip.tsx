// SPDX-License-Identifier: Apache-2.0
// What a step of the schedule is, beside the pointer or the keyboard's place.
import { duration, local, utc } from "../../format/time";
import { exact, rate } from "../../format/units";
import { Tag } from "../../ui";
import { type Row, wholeOf } from "./rows";

interface TipProps {
  row: Row;
  step: number;
  /** Of the step, in pixels of the canvas. */
  x: number;
  y: number;
  width: number;
  height: number;
}

const WIDE_PX = 380;
const HIGH_PX = 170;

export function Tip({ row, step, x, y, width, height }: TipProps) {
  const left = Math.max(0, Math.min(x + 14, width - WIDE_PX));
  const place = y + HIGH_PX > height ? { bottom: Math.max(0, height - y + 34) } : { top: y + 10 };
  return (
    <div className="schedule-tip" style={{ left, ...place }}>
      <div className="row apart">
        <strong>{row.name}</strong>
        <StateTag state={row.state} />
      </div>
      <div className="muted">
        {row.transfer.source} → {row.transfer.destination}
      </div>
      {step >= 0 ? <StepFacts row={row} step={step} /> : <WholeFacts row={row} />}
    </div>
  );
}

export const StateTag = ({ state }: { state: string }) => (state === "PAUSED" ? <Tag tone="warn">Paused</Tag> : <Tag of={state} />);

function StepFacts({ row, step }: { row: Row; step: number }) {
  const [begin, end, bps] = [row.begins[step]!, row.ends[step]!, row.rates[step]!];
  return (
    <>
      <div>
        <strong>{rate(bps)}</strong> <span className="muted">({exact(bps)} bit/s)</span>
      </div>
      <div>
        {local(begin)} – {local(end)}
        <span className="muted"> · {duration(end - begin)}</span>
      </div>
      <div className="muted">
        {utc(begin)} – {utc(end)}
      </div>
      {row.begins.length > 1 && (
        <div className="muted">
          Step {step + 1} of {row.begins.length}
        </div>
      )}
    </>
  );
}

function WholeFacts({ row }: { row: Row }) {
  const [begin, end] = wholeOf(row);
  return (
    <>
      <div>
        {local(begin)} – {local(end)}
        <span className="muted"> · {duration(end - begin)}</span>
      </div>
      <div className="muted">at most {rate(row.peak)}</div>
    </>
  );
}

/** The same for readers of the screen. */
export function spoken(row: Row, step: number): string {
  const state = row.state.toLowerCase();
  const [begin, end, bps] = [row.begins[step], row.ends[step], row.rates[step]];
  if (begin === undefined || end === undefined) return `${row.name}, ${state}`;
  return `${row.name}, ${state}. Step ${step + 1} of ${row.begins.length}: ${rate(bps)} from ${local(begin)} to ${local(end)}. Enter opens the transfer.`;
}
