// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { readState, writeState } from "../../url-state";
import { documentOf, fieldOf, formOf, SPECIFICATION, type Specification } from "./specification";

const form = (change: Partial<Specification>) => readState(SPECIFICATION, writeState(SPECIFICATION, "", change));

describe("a simulation's specification", () => {
  it("has what was asked and no more", () => {
    const { document, mistakes } = documentOf(form({ planners: ["vbls"], load: 0.9, rates: "1G:0.3, 5G" }));
    expect(mistakes).toEqual([]);
    expect(document).toEqual({
      planners: ["vbls"],
      requests: 1000,
      seed: 1,
      load: 0.9,
      sizes: { distribution: "pareto", shape: 1.1, least_bytes: 500_000_000, most_bytes: 100_000_000_000 },
      rates: [
        { rate_max_bps: 10 ** 9, weight: 0.3 },
        { rate_max_bps: 5 * 10 ** 9, weight: 1 },
      ],
      batch_s: 10,
      solver_time_limit_s: 10,
      options: { paths: 4, split: false },
    });
  });

  it("says what cannot be read", () => {
    const { mistakes } = documentOf(form({ rates: "fast:1", more: "[1]" }));
    expect(mistakes.map((mistake) => mistake.field)).toEqual(["rates", "more"]);
  });

  it("comes back from what was asked for", () => {
    const asked = form({
      planners: ["alap", "optimal:volume"],
      arrivals: "rate",
      arrivals_per_s: 3,
      sizes: "exponential",
      mean_bytes: 7,
      rates: "1Gbit/s:0.3, :0.7",
      deadline_share: 0.5,
      lead_share: 1,
      nodes: "A, B",
      split: true,
      most_segments: 3,
      more: '{"points":7}',
    });
    expect(form(formOf(documentOf(asked).document))).toEqual(asked);
  });

  it("takes a share that is not given as everybody", () =>
    expect(formOf({ deadlines: { least_factor: 2 } }).deadline_share).toBe(1));
});

it.each([
  ["sizes.mean_bytes", "mean_bytes"],
  ["planners[0]", "planners"],
  ["deadlines.most_factor", "most_factor"],
  ["trace[3].volume_bytes", "more"],
  ["options.paths", "paths"],
  ["nobody", undefined],
])("%s is shown at %s", (field, at) => expect(fieldOf(field)).toBe(at));
