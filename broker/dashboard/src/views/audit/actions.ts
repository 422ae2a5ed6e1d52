// SPDX-License-Identifier: Apache-2.0
// What the log can be filtered by: the kinds of things that it is about, and what happens to each.

export const ACTIONS: Record<string, readonly string[]> = {
  transfer: [
    "admitted",
    "committed",
    "started",
    "finished",
    "failed",
    "canceled",
    "expired",
    "changed",
    "paused",
    "resumed",
    "rebooked",
    "replanned",
    "released",
    "pulled_forward",
    "preempted",
    "displacing",
    "delayed",
    "handed_over",
    "moved_up",
    "rechained",
    "unchained",
    "signal",
  ],
  link: ["created", "changed", "deleted"],
  node: ["changed"],
  window: ["created", "removed"],
  host: ["enrolled", "changed", "removed"],
  enrolment_token: ["created", "revoked"],
  token: ["created", "changed", "revoked"],
  session: ["opened", "closed"],
  job: ["queued", "started", "done", "failed", "canceling", "canceled", "applied"],
}; // prettier-ignore

/** Every action as the log writes it, those of one kind together. */
export const ALL_ACTIONS: readonly string[] = Object.entries(ACTIONS).flatMap(([kind, verbs]) =>
  verbs.map((verb) => `${kind}.${verb}`),
);
