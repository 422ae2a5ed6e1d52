// SPDX-License-Identifier: Apache-2.0
// Which cached answers an event makes out of date. One too many costs a request, one too few shows old data.

export interface Change {
  subject_kind: string;
  subject: string;
}

// What shows the network as a whole.
const NETWORK = ["/v1/links", "/v1/topology", "/v1/network", "/v1/overview", "/v1/schedule"];

/** Questions that an event of this kind may answer anew, by the beginning of their path. */
const TOUCHED: Record<string, readonly string[]> = {
  // A transfer takes from links and runs on hosts; others give way to it, which events of their own say.
  transfer: ["/v1/transfers", "/v1/projects", "/v1/links", "/v1/network", "/v1/overview", "/v1/schedule", "/v1/hosts"],
  link: NETWORK,
  window: NETWORK,
  topology: NETWORK,
  host: ["/v1/hosts", ...NETWORK], // its interfaces are links
  enrolment_token: ["/v1/hosts"],
  token: ["/v1/tokens"],
  session: ["/v1/tokens"],
  job: ["/v1/plans", "/v1/simulations"],
};

// Of these, /v1/transfers/ID and what is below it change by events of that subject alone.
const OWN = /^\/v1\/(?:transfers|plans|simulations)\/([^/?]+)/;

export function concerned(changes: readonly Change[]): (path: string) => boolean {
  if (changes.some((change) => change.subject_kind === "stream")) return () => true; // it was reset: anything may have changed
  const subjects = new Set(changes.map((change) => change.subject));
  const kinds = new Set(changes.map((change) => change.subject_kind));
  const prefixes = [...kinds].flatMap((kind) => TOUCHED[kind] ?? ["/v1/"]);
  return (path) => {
    if (path.startsWith("/v1/audit-log")) return true;
    const own = OWN.exec(path);
    if (own) return subjects.has(decodeURIComponent(own[1] ?? ""));
    return prefixes.some((prefix) => path.startsWith(prefix));
  };
}
