// SPDX-License-Identifier: Apache-2.0

import { describe, expect, test } from "vitest";
import type { Transfer } from "../../api/types";
import { progress } from "./progress";

const WHOLE = 1_000;
const transfer = (more: Partial<Transfer>, planned = 0): Transfer =>
  ({
    state: "ACTIVE",
    mode: "managed",
    paused: false,
    volume_bytes: WHOLE,
    bytes_done: 0,
    plan: { start: null, finish: null },
    outlook: { planned_bytes: planned },
    ...more,
  }) as Transfer;

describe("progress against the plan", () => {
  test.each([
    [400, 600, "behind"],
    [600, 400, "ahead"],
    [595, 600, "on plan"], // reports take their time
  ])("%i bytes done of %i planned: %s", (bytes_done, planned, standing) => {
    expect(progress(transfer({ bytes_done }, planned))).toEqual({ done: bytes_done / WHOLE, planned: planned / WHOLE, standing });
  });
  test("the margin of a booking is never more than the whole", () => {
    expect(progress(transfer({ bytes_done: WHOLE }, WHOLE + 20)).planned).toBe(1);
  });
  test("of what is only booked nobody counts the bytes", () => {
    expect(progress(transfer({ mode: "reserve" }, 250))).toEqual({ done: null, planned: 0.25, standing: "unknown" });
  });
  test("what is paused has no plan, and what has finished is all there", () => {
    expect(progress(transfer({ paused: true, bytes_done: 100 }, 500))).toEqual({ done: 0.1, planned: null, standing: "unknown" });
    expect(progress(transfer({ state: "FINISHED", mode: "reserve" }))).toEqual({ done: 1, planned: 1, standing: "on plan" });
  });
  test("capacity that is held for a time is as far as that time", () => {
    const [begin, end] = [Date.now() - 1_000_000, Date.now() + 1_000_000].map((ms) => new Date(ms).toISOString());
    const held = progress(transfer({ volume_bytes: null, plan: { start: begin, finish: end } as Transfer["plan"] }));
    expect(held.done).toBeNull();
    expect(held.planned).toBeCloseTo(0.5, 2);
  });
});
