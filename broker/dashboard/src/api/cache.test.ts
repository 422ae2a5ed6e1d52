// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { forgetEverything, invalidate, reload, snapshotOf, watch } from "./cache";

// Not real Responses: reading the body of one takes time that the fake clock does not know of.
const answer = (status: number, document: unknown): Response =>
  ({ ok: status < 400, status, json: async () => document }) as Response;
let answers: Response[] = [];
const asked: string[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("fetch", async (path: string) => {
    asked.push(path);
    await new Promise((resolve) => setTimeout(resolve, 10));
    return answers.shift() ?? answer(200, asked.length);
  });
});

afterEach(() => {
  forgetEverything();
  asked.length = 0;
  answers = [];
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("asks once for everybody who looks, and shows the old while the new is on its way", async () => {
  const heard = vi.fn();
  const stops = [watch("/v1/links", heard), watch("/v1/links", heard)];
  expect(snapshotOf("/v1/links")).toMatchObject({ data: undefined, loading: true });
  await vi.advanceTimersByTimeAsync(10);
  expect(snapshotOf("/v1/links")).toEqual({ data: 1, problem: undefined, loading: false });
  reload("/v1/links");
  expect(snapshotOf("/v1/links")).toMatchObject({ data: 1, loading: true });
  await vi.advanceTimersByTimeAsync(10);
  expect(snapshotOf("/v1/links").data).toBe(2);
  expect(asked.length).toBe(2);
  for (const stop of stops) stop();
});

it("asks again what is watched, and later what is not", async () => {
  const stop = watch("/v1/links", () => {});
  watch("/v1/hosts", () => {})();
  await vi.advanceTimersByTimeAsync(10);
  asked.length = 0;
  invalidate("/v1/");
  expect(asked).toEqual(["/v1/links"]);
  await vi.advanceTimersByTimeAsync(10);
  watch("/v1/hosts", () => {})();
  expect(asked).toEqual(["/v1/links", "/v1/hosts"]);
  stop();
});

it("keeps live updates to one question at a time, with a rest between", async () => {
  const stop = watch("/v1/links", () => {});
  await vi.advanceTimersByTimeAsync(10); // the answer took 10 ms: a rest of 30
  for (let i = 0; i < 20; i += 1) {
    invalidate("/v1/links", true);
    await vi.advanceTimersByTimeAsync(1);
  }
  expect(asked.length).toBe(1);
  await vi.advanceTimersByTimeAsync(15);
  expect(asked.length).toBe(2);
  invalidate("/v1/links", true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked.length).toBe(3);
  stop();
});

it("keeps what it knew when a refresh fails", async () => {
  const stop = watch("/v1/links", () => {});
  await vi.advanceTimersByTimeAsync(10);
  answers = [answer(503, { type: "x/problems/unavailable", title: "Unavailable", detail: "away" })];
  reload("/v1/links");
  await vi.advanceTimersByTimeAsync(10);
  expect(snapshotOf("/v1/links").data).toBe(1);
  expect(snapshotOf("/v1/links").problem).toMatchObject({ status: 503, code: "unavailable" });
  stop();
});
