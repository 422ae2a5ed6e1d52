// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { at, url } from "./client";
import { concerned } from "./concerns";
import { Problem } from "./problem";
import { grants } from "./session";
import { StreamParser } from "./sse";

describe("addresses", () => {
  it("leaves out what is empty and repeats lists", () => {
    expect(url("/v1/transfers", { state: ["HELD", "ACTIVE"], search: "", cursor: null, limit: 0, project: "a&b" })).toBe(
      "/v1/transfers?state=HELD&state=ACTIVE&limit=0&project=a%26b",
    );
  });
  it("escapes ids", () => expect(at`/v1/links/${"a/b?"}/calendar`).toBe("/v1/links/a%2Fb%3F/calendar"));
});

describe("problems", () => {
  it("reads RFC 9457 and finds fields", async () => {
    const document = {
      type: "https://bandwidth-broker.invalid/problems/invalid",
      title: "Invalid",
      status: 422,
      detail: "x",
      errors: [{ field: "links.0.id", detail: "is empty" }],
    };
    const problem = await Problem.from(new Response(JSON.stringify(document), { status: 422 }));
    expect(problem.code).toBe("invalid");
    expect(problem.of("links")).toBe("is empty");
    expect(problem.of("link")).toBeUndefined();
  });
  it("makes do with a page of a proxy", async () => {
    const problem = await Problem.from(new Response("<h1>Bad gateway</h1>", { status: 502, statusText: "Bad Gateway" }));
    expect([problem.status, problem.code, problem.detail]).toEqual([502, "fault", "The broker answered 502 Bad Gateway"]);
  });
});

it.each([
  [["operate"], "read", true],
  [["operate"], "submit", true],
  [["operate"], "admin", false],
  [["admin"], "read", true],
  [["admin"], "operate", false],
  [["agent"], "read", false],
] as const)("%s includes %s: %s", (held, wanted, granted) => expect(grants(held, wanted)).toBe(granted));

describe("the stream", () => {
  const STREAM = "id: 7-1\n: still here\n\nid: 7-2\nevent: link.created\ndata: {}\n\nid: 7-3\ndata: a\ndata: b\n\n";

  it.each([1, 3, 1000])("reads messages from pieces of %s", (size) => {
    const parser = new StreamParser();
    const pieces = STREAM.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
    expect(pieces.flatMap((piece) => parser.feed(piece))).toEqual([
      { id: "7-2", data: "{}" },
      { id: "7-3", data: "a\nb" },
    ]);
  });

  it("remembers an id without an event, and forgets half a message", () => {
    const parser = new StreamParser();
    expect(parser.feed("id: 7-1\n: still here\n\ndata: half")).toEqual([]);
    parser.restart();
    expect(parser.lastId).toBe("7-1");
    expect(parser.feed("\n\ndata: x\n\n")).toEqual([{ id: "7-1", data: "x" }]);
  });
});

describe("what an event makes out of date", () => {
  const one = concerned([{ subject_kind: "transfer", subject: "tr_1" }]);
  it.each([
    ["/v1/transfers?state=HELD", true],
    ["/v1/transfers/tr_1", true],
    ["/v1/transfers/tr_1/events?limit=5", true],
    ["/v1/transfers/tr_2", false],
    ["/v1/links/A/calendar?points=10", true],
    ["/v1/audit-log", true],
    ["/v1/tokens", false],
  ])("of a transfer: %s %s", (path, asked) => expect(one(path)).toBe(asked));
  it("of a kind that is not known here: everything", () =>
    expect(concerned([{ subject_kind: "new", subject: "x" }])("/v1/hosts")).toBe(true));
});
