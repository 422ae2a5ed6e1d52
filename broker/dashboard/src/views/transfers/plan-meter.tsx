// SPDX-License-Identifier: Apache-2.0
// Two things in one bar: how much has arrived (filled), and how much the plan has carried by now (the mark).
import { share } from "../../format/units";
import "./plan-meter.css";
import type { Progress } from "./progress";

export function PlanMeter({ of: { done, planned, standing } }: { of: Progress }) {
  const words = inWords(done, planned, standing);
  const filled = done ?? planned ?? 0;
  return (
    <span className="plan-meter" title={words}>
      <span
        className={`plan-meter-bar ${standing === "behind" ? "behind" : ""} ${done === null ? "unseen-bytes" : ""}`}
        role="img"
        aria-label={words}
      >
        <span className="plan-meter-done" style={{ width: `${filled * 100}%` }} />
        {planned !== null && done !== null && <span className="plan-meter-planned" style={{ left: `${planned * 100}%` }} />}
      </span>
      <span className="plan-meter-share" aria-hidden="true">
        {share(done ?? planned)}
      </span>
    </span>
  );
}

function inWords(done: number | null, planned: number | null, standing: Progress["standing"]): string {
  if (done === null)
    return planned === null
      ? "Not counted: it is only booked"
      : `${share(planned)} of its booking is over; nobody counts its bytes`;
  if (planned === null) return `${share(done)} done`;
  return `${share(done)} done, ${share(planned)} planned by now${standing === "unknown" ? "" : `: ${standing}`}`;
}
