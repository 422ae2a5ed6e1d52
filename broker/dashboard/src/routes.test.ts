// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { to } from "./addresses";
import { ownPath } from "./router";
import { match, paramsOf } from "./routes";

it.each(["plain", "a/b", "ü ?#&%", "100%"])("writes and reads the link %s", (id) => {
  const found = match(to.link(id));
  expect(found?.route.pattern).toBe("/links/:id");
  expect(found?.params).toEqual({ id });
});

it("knows its addresses", () => {
  expect(paramsOf("/jobs/:kind/:id", to.job("plan", "job_1"))).toEqual({ kind: "plan", id: "job_1" });
  expect(match("/")?.route.title).toBe("Overview");
  expect(match("/links/")?.route.title).toBe("Links");
  expect(match("/nothing")).toBeUndefined();
  expect(match("/links/%")).toBeUndefined();
});

it.each([
  ["/links?x=1", "/links?x=1"],
  ["//elsewhere.example", "/"],
  ["/\\elsewhere.example", "/"],
  ["https://elsewhere.example", "/"],
  ["javascript:alert(1)", "/"],
  [null, "/"],
])("goes on to %s only within the page", (given, path) => expect(ownPath(given)).toBe(path));
