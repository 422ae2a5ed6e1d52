// SPDX-License-Identifier: Apache-2.0
// How far a transfer is, and how far its plan has it by now, as shares of the whole.

import type { Plan, Transfer } from "../../api/types";
import { seconds } from "../../format/time";

export interface Progress {
  /** What has arrived. Null where nobody counts: of what is only booked, the broker sees no bytes. */
  done: number | null;
  /** What the plan has carried by now. Null where there is no plan that goes on: paused, canceled. */
  planned: number | null;
  standing: "ahead" | "on plan" | "behind" | "unknown";
}

// Reports come every few seconds: so much of a difference is the time they take, and no news.
const SAME = 0.01;

export function progress(transfer: Transfer): Progress {
  const whole = transfer.volume_bytes;
  if (transfer.state === "FINISHED") return { done: 1, planned: 1, standing: "on plan" };
  if (whole === null || whole === 0) return { done: null, planned: heldShare(transfer.plan), standing: "unknown" };
  const done = transfer.mode === "reserve" ? null : within(transfer.bytes_done / whole);
  const going = !transfer.paused && (transfer.state === "RESERVED" || transfer.state === "ACTIVE");
  const planned = going && transfer.outlook ? within(transfer.outlook.planned_bytes / whole) : null;
  return { done, planned, standing: standing(done, planned) };
}

/** Of what holds capacity for a time: the share of that time that is over. */
function heldShare({ start, finish }: Plan, now = Date.now() / 1000): number | null {
  if (start === null || finish === null) return null;
  const [begin, end] = [seconds(start), seconds(finish)];
  return end > begin ? within((now - begin) / (end - begin)) : null;
}

function standing(done: number | null, planned: number | null): Progress["standing"] {
  if (done === null || planned === null) return "unknown";
  if (Math.abs(done - planned) <= SAME) return "on plan";
  return done < planned ? "behind" : "ahead";
}

function within(part: number): number {
  return Math.min(Math.max(part, 0), 1);
}
