// SPDX-License-Identifier: Apache-2.0

import { expect, test } from "vitest";
import type { Transfer } from "../../api/types";
import { lateness } from "./promise";

const transfer = (state: Transfer["state"]): Transfer =>
  ({
    state,
    paused: false,
    actual_finish: "2026-01-01T00:00:24Z",
    promised_finish: "2026-01-01T00:01:00Z",
    plan: { finish: null },
  }) as Transfer;

test("what finished is early or late against its promise; the end of what never finished is neither", () => {
  expect(lateness(transfer("FINISHED"))).toBe(-36);
  for (const state of ["FAILED", "EXPIRED", "CANCELED"] as const) expect(lateness(transfer(state))).toBe(0);
});
