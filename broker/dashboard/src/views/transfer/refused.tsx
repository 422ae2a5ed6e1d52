// SPDX-License-Identifier: Apache-2.0
// A refusal with its explanation: the link that binds and who has booked it, and counter-offers, each one click away.
import type { Problem } from "../../api/problem";
import { Button, Refusal, Time } from "../../ui";
import { LinkName } from "./link-names";
import { bindingOf, brokenBy, type Change, offersOf } from "./offers";
import { TransferName } from "./transfer-name";

const MOST_NAMED = 5;

export function Refused({ problem, onOffer }: { problem: Problem; onOffer: (change: Change) => void }) {
  const offers = offersOf(problem);
  return (
    <div className="stack">
      <Refusal problem={problem} />
      <Binds problem={problem} />
      <Breaks problem={problem} />
      {offers.length > 0 && (
        <div className="stack" role="group" aria-label="What could be had instead">
          <strong>What could be had instead</strong>
          <div className="row">
            {offers.map(({ title, change }) => (
              <Button key={title} onClick={() => onOffer(change)}>
                {title}
              </Button>
            ))}
          </div>
        </div>
      )}
    </div>
  );
}

function Binds({ problem }: { problem: Problem }) {
  const binding = bindingOf(problem);
  if (!binding) return null;
  const others = binding.reservations.length - MOST_NAMED;
  return (
    <p>
      <LinkName id={binding.link} /> has no more room from <Time at={binding.from} /> to <Time at={binding.to} />.
      {binding.reservations.length > 0 && " It is held by "}
      {binding.reservations.slice(0, MOST_NAMED).map((id, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <TransferName id={id} />
        </span>
      ))}
      {others > 0 && ` and ${others} more`}
      {binding.reservations.length > 0 && "."}
    </p>
  );
}

function Breaks({ problem }: { problem: Problem }) {
  const broken = brokenBy(problem);
  if (broken.length === 0) return null;
  return (
    <div>
      It would break the promise of
      <ul>
        {broken.map(({ id, finish }) => (
          <li key={id}>
            <TransferName id={id} /> (finishes <Time at={finish} />)
          </li>
        ))}
      </ul>
    </div>
  );
}
