// SPDX-License-Identifier: Apache-2.0
// Why a transfer waits, or is slower than it was promised, in the words of people. The broker's own sentence names ids; it is kept
// for those who want it, and for codes that are newer than this page.
import type { WaitingReason } from "../../api/types";

const WORDS: Record<string, string> = {
  held: "Held until it is committed",
  scheduled: "Its booked time has not come",
  waiting_for_predecessor: "Begins when the transfer before it has ended",
  predecessor_late: "The transfer before it needs longer",
  paused: "Paused",
  preempted: "A transfer of higher priority took its place",
  capacity_lowered: "A link on its path lost capacity; it was planned anew",
  capacity_lost: "A link on its path lost capacity, and the rest fits nowhere",
  behind: "Fell behind its booking; the rest was booked anew",
  promise_broken: "Its deadline cannot be kept any more",
  unheard: "Nothing is heard of it from its agents; it may be under way, and keeps what is booked",
  agents_lost: "Its agents fell silent; a late report will correct this",
  never_fetched: "An agent that it needs never fetched it",
  unused: "Nobody came to use what was booked",
  expired: "It was not committed in time",
};

export function reasonWords(reason: WaitingReason): string {
  return WORDS[reason.code] ?? sentence(reason.detail || reason.code.replace(/_/g, " "));
}

/** What the broker's sentence adds to these words; nothing, where the words are that sentence. */
export function reasonDetail(reason: WaitingReason): string | undefined {
  return reason.code in WORDS && reason.detail ? sentence(reason.detail) : undefined;
}

/** Codes whose `limited_by` is a link or a transfer: what to lead to. */
export function limitedBy(reason: WaitingReason): { kind: "link" | "transfer"; id: string } | undefined {
  if (!reason.limited_by) return undefined;
  if (reason.code === "capacity_lowered" || reason.code === "capacity_lost") return { kind: "link", id: reason.limited_by };
  if (reason.code === "waiting_for_predecessor" || reason.code === "predecessor_late")
    return { kind: "transfer", id: reason.limited_by };
  return undefined;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
