// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { iso } from "../../format/time";
import { share } from "../../format/units";
import { balance, gainOf, validity } from "./changes";
import { difference } from "./measures";
import type { PlanChange } from "./result";

const plain = (words: string | undefined) => words?.replaceAll("\u202f", " ");
const side = (finish: number, path = ["L"]) => ({ start: iso(0), finish: iso(finish), paths: [path], peak_bps: 1 });
const change = (before: number, after: number, path = ["L"]): PlanChange => ({
  transfer_id: "tr",
  label: null,
  promised: iso(100),
  before: side(before),
  after: side(after, path),
});

describe("a difference", () => {
  const admitted = { show: share, better: "more" } as const;
  it("says whether it is a good one", () => {
    expect(plain(difference(admitted, 0.5, 0.75)?.words)).toBe("+25 %");
    expect(difference(admitted, 0.5, 0.75)?.tone).toBe("good");
    expect(difference({ ...admitted, better: "less" }, 0.5, 0.75)?.tone).toBe("bad");
    expect(difference({ show: share }, 0.5, 0.25)).toMatchObject({ tone: "plain" });
  });

  it("is none where there is only rounding, or nothing to compare", () => {
    expect(difference(admitted, 0.5, 0.5 + 1e-9)?.words).toBe("no change");
    expect(difference(admitted, null, 0.5)).toBeUndefined();
  });
});

describe("a re-optimisation", () => {
  it("counts who gains and who loses", () => {
    const gains = [change(50, 40), change(50, 60, ["M"]), change(50, 50, ["M"])].map(gainOf);
    expect(balance(gains)).toEqual({ earlier: 1, later: 1, moved: 2 });
    expect(gains[1]).toMatchObject({ earlier: -10, slack: 40, moved: true });
  });

  it("holds until its time, while its links are as they were", () => {
    const result = { apply_by: iso(1_000), links: { L: 3, M: 4 } };
    expect(validity(result, undefined, 999)).toEqual({ holds: true });
    expect(
      validity(
        result,
        new Map([
          ["L", 3],
          ["M", 4],
          ["N", 9],
        ]),
        999,
      ),
    ).toEqual({ holds: true });
    expect(
      validity(
        result,
        new Map([
          ["L", 3],
          ["M", 5],
        ]),
        999,
      ),
    ).toEqual({ holds: false, why: "links", links: ["M"] });
    expect(validity(result, new Map([["L", 3]]), 999)).toMatchObject({ links: ["M"] });
    expect(validity(result, undefined, 1_001)).toEqual({ holds: false, why: "late" });
  });
});
