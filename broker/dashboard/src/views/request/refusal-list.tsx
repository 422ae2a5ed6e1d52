// SPDX-License-Identifier: Apache-2.0
// Refusals: the reason, the link and interval that bind, and counter-offers, each a button that fills the form.

import { to } from "../../addresses";
import { linkName } from "../../format/names";
import { plannerTitle } from "../../format/planners";
import { prose } from "../../format/prose";
import { Button, Icon, Link, Time } from "../../ui";
import type { Change } from "./form";
import { type Binding, type Refused, waysOut } from "./offers";
import type { Network } from "./use-network";

interface RefusalListProps {
  refused: readonly Refused[];
  set: (change: Change) => void;
  links: Network["links"];
}

export function RefusalList({ refused, set, links }: RefusalListProps) {
  return (
    <ul className="request-refusals">
      {refused.map(({ planners, refusal }) => (
        <li key={planners.join()}>
          <p>
            <Icon name="bad" /> <strong>{inWords(planners.map(plannerTitle))}</strong> {planners.length > 1 ? "refuse" : "refuses"}:{" "}
            <span title={refusal.detail}>{prose(refusal.detail)}.</span>{" "}
            {refusal.binding && <Where binding={refusal.binding} links={links} />}
          </p>
          <WaysOut of={{ planners, refusal }} set={set} />
        </li>
      ))}
    </ul>
  );
}

function Where({ binding: { link, interval }, links }: { binding: Binding; links: Network["links"] }) {
  const known = links.get(link);
  return (
    <>
      What binds is{" "}
      <Link to={to.link(link)} title={link}>
        {known ? linkName(known) : link}
      </Link>{" "}
      from <Time at={interval.from} /> to <Time at={interval.to} />.
    </>
  );
}

function WaysOut({ of: { planners, refusal }, set }: { of: Refused; set: (change: Change) => void }) {
  const ways = waysOut(refusal, Date.now() / 1000);
  if (ways.length === 0) return null;
  return (
    <div className="row" role="group" aria-label={`Instead, with ${inWords(planners.map(plannerTitle))}`}>
      <span className="muted">Instead:</span>
      {ways.map(({ kind, words, change }) => (
        <Button key={kind} onClick={() => set(change)}>
          {words}
        </Button>
      ))}
    </div>
  );
}

function inWords(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
