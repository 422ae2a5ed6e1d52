// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { readState, writeState } from "../../url-state";
import { PLAN, type PlanForm, planBody, planForm, planLacks } from "./plan-body";

const form = (change: Partial<PlanForm>) => readState(PLAN, writeState(PLAN, "", change));

it("restricts only what the scope says", () => {
  const all = { project: "atlas", link: ["L"], transfer: ["tr_1"] };
  expect(planBody(form(all))).toEqual({ objective: "congestion", time_limit_s: 30, review_s: 300 });
  expect(planBody(form({ ...all, scope: "links" }))).toMatchObject({ links: ["L"] });
});

it("comes back from what was asked for", () => {
  for (const asked of [
    form({}),
    form({ scope: "links", link: ["L1", "L2"], objective: "volume" }),
    form({ scope: "project", project: "cms", review_s: 60 }),
  ]) {
    expect(form(planForm(planBody(asked)))).toEqual(asked);
  }
});

it("says what is missing", () => {
  expect(planLacks(form({}))).toBeUndefined();
  expect(planLacks(form({ scope: "transfers" }))).toMatch("transfer");
});
