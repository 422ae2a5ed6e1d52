// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { Token } from "../../api/types";
import { consequences, impliedBy, limitsOf, validity } from "./tokens";

const NOW = new Date("2026-01-01T00:00:00Z");

function token(given: Partial<Token> = {}): Token {
  const plain = {
    id: "tok_1",
    name: "robot",
    scopes: ["read"],
    host: null,
    created: "2025-01-01T00:00:00Z",
    expires: null,
    revoked: null,
    last_used: null,
  };
  return { ...plain, sessions: 0, transfers: 0, limits: {}, revision: 1, ...given };
}

test("limits say what a token may have, and has where that is counted", () => {
  const limits = {
    open_transfers: { value: 50_000, default: true, used: 12 },
    priority: { value: 100, default: true, used: null },
    jobs: { value: null, default: false, used: 0 },
  };
  expect(limitsOf(token({ limits }))).toEqual([
    "Open transfers: 12 of 50\u202f000",
    "Highest priority: 100",
    "Jobs: 0 of no limit",
  ]);
});

test("a token ends when it is revoked, or at its time, and says so a week before", () => {
  expect(validity(token(), NOW)).toBe("valid");
  expect(validity(token({ expires: "2026-02-01T00:00:00Z" }), NOW)).toBe("valid");
  expect(validity(token({ expires: "2026-01-07T00:00:00Z" }), NOW)).toBe("ending");
  expect(validity(token({ expires: "2026-01-01T00:00:00Z" }), NOW)).toBe("expired");
  expect(validity(token({ expires: "2026-02-01T00:00:00Z", revoked: "2025-12-01T00:00:00Z" }), NOW)).toBe("revoked");
});

test("a scope that another one includes is known", () => {
  expect(impliedBy("read", ["operate"])).toBe("operate");
  expect(impliedBy("submit", ["submit", "admin"])).toBeUndefined();
  expect(impliedBy("operate", ["admin"])).toBeUndefined();
});

describe("what revoking breaks", () => {
  const texts = (one: Token, all: Token[] = [one, token({ id: "tok_2", scopes: ["admin"] })], own = "tok_2") =>
    consequences(one, all, own, NOW).map(({ text }) => text);

  test("a program's token, and what it booked", () => {
    expect(texts(token({ transfers: 2 }))).toEqual([
      "Every program and script that uses it is refused (401) from now on.",
      "2 live transfers that were booked with it go on as booked; only operators can change them afterwards.",
    ]);
  });

  test("one's own token: the session that asks is not counted twice", () => {
    const own = token({ sessions: 2 });
    expect(texts(own, undefined, own.id).slice(0, 2)).toEqual([
      "You are signed in with it: you are signed out at once.",
      "1 other session of this page, signed in with it, ends.",
    ]);
  });

  test("the last administrator, where another one has expired", () => {
    const last = token({ scopes: ["admin"] });
    const expired = token({ id: "tok_2", scopes: ["admin"], expires: "2025-12-31T00:00:00Z" });
    expect(texts(last, [last, expired])[0]).toMatch(/^It is the last token that may make tokens/);
    expect(texts(last)[0]).not.toMatch(/last token/);
  });

  test("an agent's token names its host", () => {
    expect(texts(token({ scopes: ["agent"], host: "dtn-a" }))[0]).toMatch(/^The agent on dtn-a can no longer reach the broker/);
  });
});
