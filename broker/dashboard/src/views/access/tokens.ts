// SPDX-License-Identifier: Apache-2.0
// Scopes and validity of tokens, and what a revocation stops. Pure; the texts are tested against the table of scopes.
import { grants, type Scope } from "../../api/session";
import type { Token } from "../../api/types";
import { seconds } from "../../format/time";
import { exact } from "../../format/units";
import type { Tone } from "../../ui";

/** What people may be given, the least first. An agent gets its token when its host is enrolled. */
export const SCOPES: readonly { scope: Scope; word: string; means: string }[] = [
  { scope: "read", word: "Read", means: "See the network, transfers, hosts and jobs, and ask for quotes. Changes nothing." },
  { scope: "submit", word: "Submit", means: "Book transfers; change, pause and cancel its own. Includes Read." },
  {
    scope: "operate",
    word: "Operate",
    means: "Links, windows, hosts, everybody's transfers, plans, the audit log. Includes Submit.",
  },
  { scope: "admin", word: "Admin", means: "Make and revoke tokens. Includes Read, but not Operate." },
];

export const AGENT = {
  scope: "agent" as const,
  word: "Agent",
  means: "An agent's own: it speaks for its host and can do nothing else.",
};

export const scopeOf = (scope: string) => SCOPES.find((one) => one.scope === scope) ?? AGENT;

/** The scopes besides which `scope` says nothing new: "read" beside "operate". */
export function impliedBy(scope: Scope, held: readonly Scope[]): Scope | undefined {
  return held.find((other) => other !== scope && grants([other], scope));
}

export type Validity = "valid" | "ending" | "expired" | "revoked";

const SOON_S = 7 * 86_400;

export function validity(token: Pick<Token, "expires" | "revoked">, now: Date): Validity {
  if (token.revoked !== null) return "revoked";
  if (token.expires === null) return "valid";
  const left = seconds(token.expires) - seconds(now);
  return left <= 0 ? "expired" : left < SOON_S ? "ending" : "valid";
}

export const VALIDITY: Record<Validity, { word: string; tone: Tone }> = {
  valid: { word: "Valid", tone: "good" },
  ending: { word: "Ends soon", tone: "warn" },
  expired: { word: "Expired", tone: "idle" },
  revoked: { word: "Revoked", tone: "idle" },
};

export const works = (token: Token, now: Date): boolean => ["valid", "ending"].includes(validity(token, now));

const LIMIT_WORDS: Record<string, string> = {
  open_transfers: "Open transfers",
  booked_gb_hours: "GB × hours booked ahead",
  horizon_s: "Books ahead (s)",
  priority: "Highest priority",
  jobs: "Jobs",
  successors: "Behind others' transfers",
};

/** A line for each limit: what it may have, and has where that is counted. */
export function limitsOf(token: Pick<Token, "limits">): string[] {
  return Object.entries(token.limits).map(([name, { value, used }]) => {
    const most = value === null ? "no limit" : exact(value);
    return `${LIMIT_WORDS[name] ?? name}: ${used === null ? most : `${exact(used)} of ${most}`}`;
  });
}

/** What a revocation of the token stops and what continues, the worst first. `own`: the id of the token that is signed in. */
export function consequences(token: Token, all: readonly Token[], own: string, now: Date): { bad: boolean; text: string }[] {
  const found: { bad: boolean; text: string }[] = [];
  const stops = (text: string) => found.push({ bad: true, text });
  const others = all.filter((other) => other.id !== token.id && works(other, now));
  if (token.scopes.includes("admin") && !others.some((other) => other.scopes.includes("admin"))) {
    stops("It is the last token that may make tokens. A new one comes only from starting “bwb up” again on the broker's machine.");
  }
  if (token.id === own) stops("You are signed in with it: you are signed out at once.");
  const theirs = token.sessions - (token.id === own ? 1 : 0);
  if (theirs > 0)
    stops(
      `${theirs} other ${theirs === 1 ? "session" : "sessions"} of this page, signed in with it, ${theirs === 1 ? "ends" : "end"}.`,
    );
  if (token.host !== null) {
    stops(
      `The agent on ${token.host} can no longer reach the broker: it sends by the schedule that it has, then at the fallback rate. The host must be enrolled again.`,
    );
  } else {
    stops("Every program and script that uses it is refused (401) from now on.");
  }
  if (token.transfers > 0) {
    const many = token.transfers > 1;
    found.push({
      bad: false,
      text: `${token.transfers} live ${many ? "transfers that were" : "transfer that was"} booked with it ${many ? "go" : "goes"} on as booked; only operators can change ${many ? "them" : "it"} afterwards.`,
    });
  }
  return found;
}
