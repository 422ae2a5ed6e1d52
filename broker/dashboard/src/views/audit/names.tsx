// SPDX-License-Identifier: Apache-2.0
// Who did it and to what, by name, with the way there.

import { to } from "../../addresses";
import type { BrokerEvent } from "../../api/types";
import { shortId } from "../../format/names";
import { Link } from "../../ui";

/** Tokens by their name; what is no token ("clock", "agent dtn-a") is its own name. */
export function actorName({ actor, actor_name }: Pick<BrokerEvent, "actor" | "actor_name">): string {
  return actor_name ?? (actor.startsWith("tok_") ? `Token ${shortId(actor)}` : actor);
}

const KINDS: Record<string, string> = {
  transfer: "Transfer",
  link: "Link",
  window: "Window",
  node: "Node",
  host: "Host",
  token: "Token",
  enrolment_token: "Enrolment token",
  session: "Session",
  job: "Job",
  topology: "Network",
};

export const kindName = (kind: string): string => KINDS[kind] ?? kind;

/** The name that it has or had: from the broker, else from what the event says of it, else its kind and the end of its id. */
export function subjectName({
  subject,
  subject_name,
  subject_kind,
  before,
  after,
}: Pick<BrokerEvent, "subject" | "subject_name" | "subject_kind" | "before" | "after">): string {
  const said = after ?? before ?? {};
  const own = subject_name ?? said.label ?? said.name;
  if (typeof own === "string" && own !== "") return own;
  return ["link", "host", "node", "topology"].includes(subject_kind) ? subject : `${kindName(subject_kind)} ${shortId(subject)}`;
}

function addressOf({ subject, subject_kind, before, after }: BrokerEvent): string | undefined {
  const id = encodeURIComponent(subject);
  switch (subject_kind) {
    case "transfer":
      return to.transfer(subject);
    case "link":
      return to.link(subject);
    case "host":
      return to.host(subject);
    case "token":
      return `${to.access()}?show=all&search=${id}`;
    case "job": {
      const kind = (after ?? before)?.kind;
      return typeof kind === "string" ? to.job(kind, subject) : to.jobs();
    }
    default:
      return undefined;
  }
}

export function Subject({ of }: { of: BrokerEvent }) {
  const address = addressOf(of);
  const name = subjectName(of);
  return <span title={`${name} · ${of.subject}`}>{address === undefined ? name : <Link to={address}>{name}</Link>}</span>;
}
