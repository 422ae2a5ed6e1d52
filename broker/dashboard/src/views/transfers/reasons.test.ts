// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { limitedBy, reasonDetail, reasonWords } from "./reasons";

const reason = (code: string, detail: string, limited_by: string | null = null) => ({ code, detail, limited_by, until: null });

test("known codes are said without ids, and the broker's sentence stays at hand", () => {
  const waiting = reason("waiting_for_predecessor", "begins when tr_1 has ended", "tr_1");
  expect(reasonWords(waiting)).toBe("Begins when the transfer before it has ended");
  expect(reasonDetail(waiting)).toBe("Begins when tr_1 has ended");
  expect(limitedBy(waiting)).toEqual({ kind: "transfer", id: "tr_1" });
});

test("codes of agents and of newer brokers are said as they come", () => {
  const failed = reason("disk_full", "no space left on the receiver", "dtn2");
  expect([reasonWords(failed), reasonDetail(failed), limitedBy(failed)]).toEqual([
    "No space left on the receiver",
    undefined,
    undefined,
  ]);
  expect(reasonWords(reason("of_tomorrow", ""))).toBe("Of tomorrow");
});

test("a link that lost capacity is led to", () => {
  expect(limitedBy(reason("capacity_lowered", "", "L1"))).toEqual({ kind: "link", id: "L1" });
});
