// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Planner } from "../../api/types";
import { plannerTitle } from "../../format/planners";
import { readState, writeState } from "../../url-state";
import { bodyOf, type Change, complete, FORM, missing, questionOf } from "./form";

const TRAITS = { books: true, joint: false, eager: true, late: false, fixed_rate: false, takes_turns: false, time_limit: false };
const planner = (name: string, traits: Partial<Planner> = {}): Planner => ({
  name,
  about: "",
  ...TRAITS,
  default: false,
  ...traits,
});
const PLANNERS = [
  planner("fbls"),
  planner("vbls", { default: true }),
  planner("vifi", { joint: true }),
  planner("new", { books: false }),
];

const writtenAs = (change: Change) => readState(FORM, writeState(FORM, "", change));
const formOf = (change: Change) => complete(writtenAs(change), PLANNERS);
const ENOUGH: Change = { source: "A", destination: "B", volume_bytes: 10 ** 12 };

describe("the form in the URL", () => {
  it("comes back as it was written", () => {
    const change: Change = {
      ...ENOUGH,
      deadline: "2026-01-01T00:00:00.000Z",
      planner: "alap",
      compare: ["alap", "fbls"],
      path: ["L 1", "L&2"],
      split: true,
      mode: "observed",
      label: "<b>&=?</b>",
    };
    expect(formOf(change)).toMatchObject(change);
  });

  it("keeps to itself what is as always", () => expect(writeState(FORM, "", { planner: "", priority: 0, verify: true })).toBe(""));
  it("knows an emptied comparison from an untouched one", () => {
    expect(formOf({ compare: [] }).compare).toEqual([]);
    expect(writtenAs({}).compare).toBeNull();
  });

  it.each(["?deadline=soon", "?volume_bytes=much", "?mode=fast", "?priority="])("%s is as if it were not there", (search) => {
    expect(readState(FORM, search)).toEqual(readState(FORM, ""));
  });
});

describe("the planners", () => {
  it("are the broker's default and those that plan each request by itself", () => {
    expect(formOf({})).toMatchObject({ planner: "vbls", compare: ["fbls", "vbls"] });
  });

  it("are those that somebody chose, known to this page or not", () => {
    expect(formOf({ planner: "new", compare: ["vifi"] })).toMatchObject({ planner: "new", compare: ["vifi"] });
    expect(plannerTitle("new")).toBe("new");
  });

  it("are left to the broker while they are unknown", () => {
    expect(bodyOf(complete(writtenAs(ENOUGH), []))).not.toHaveProperty("planner");
  });
});

describe("the body", () => {
  it("says what is missing", () => {
    expect(missing(formOf({}))).toEqual(["source", "destination", "volume"]);
    expect(missing(formOf({ ...ENOUGH, size: "duration" }))).toEqual(["duration"]);
    expect(bodyOf(formOf({ source: "A" }))).toBeUndefined();
    expect(missing(formOf({ ...ENOUGH, source: "source", destination: "volume" }))).toEqual([]);
  });

  it("needs destination ports for packets to the other host", () => {
    expect(missing(formOf({ ...ENOUGH, mode: "observed" }))).toEqual(["destination ports"]);
    expect(missing(formOf({ ...ENOUGH, mode: "observed", destination_ports: "5001" }))).toEqual([]);
    expect(missing(formOf({ ...ENOUGH, mode: "observed", address: "192.0.2.1" }))).toEqual([]);
  });

  it("has only what was asked for", () => {
    expect(bodyOf(formOf(ENOUGH))).toEqual({ source: "A", destination: "B", volume_bytes: 10 ** 12, planner: "vbls" });
  });

  it("takes a volume or a duration", () => {
    expect(bodyOf(formOf({ ...ENOUGH, size: "duration", duration_s: 60 }))).toEqual({
      source: "A",
      destination: "B",
      duration_s: 60,
      planner: "vbls",
    });
  });

  it("has the payload that the mode asks for", () => {
    const file = { file: "a/b.dat", mode: "managed" } as const;
    expect(bodyOf(formOf({ ...ENOUGH, ...file }))?.payload).toEqual({
      path: "a/b.dat",
      destination_path: null,
      overwrite: false,
      verify: true,
    });
    expect(bodyOf(formOf({ ...ENOUGH, ...file, mode: "wrapped" }))?.payload).toBeUndefined();
    const match = { protocol: "udp", address: "192.0.2.1", source_ports: null, destination_ports: "5001-5010" };
    expect(
      bodyOf(formOf({ ...ENOUGH, mode: "observed", protocol: "udp", address: "192.0.2.1", destination_ports: "5001-5010" }))
        ?.payload,
    ).toEqual({ match });
  });
});

describe("the question", () => {
  it("is put to the compared planners and the chosen one", () => {
    expect(questionOf(formOf({ ...ENOUGH, planner: "vifi", compare: ["vbls"] }))?.planners).toEqual(["vbls", "vifi"]);
  });

  it("is the same under another name", () => {
    expect(JSON.stringify(questionOf(formOf(ENOUGH)))).toBe(
      JSON.stringify(questionOf(formOf({ ...ENOUGH, label: "x", project: "y" }))),
    );
  });
});
