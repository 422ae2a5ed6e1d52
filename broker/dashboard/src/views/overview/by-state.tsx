// SPDX-License-Identifier: Apache-2.0
import type { Schemas } from "../../api/types";
import { Card, Link, Tag } from "../../ui";
import { listOf } from "./lists";

type States = Schemas["States"];

const LIVE = ["HELD", "RESERVED", "ACTIVE"] as const;
const ENDED = ["FINISHED", "FAILED", "CANCELED", "EXPIRED"] as const;

/** Transfers by state; each number leads to them. */
export function ByState({ of, since }: { of: States; since: string }) {
  return (
    <Card title="Transfers">
      <div className="columns overview-states">
        <Rows title="Now" states={LIVE} of={of} to={listOf.live} />
        <Rows title="Ended in 24 h" states={ENDED} of={of} to={(state) => listOf.ended(state, since)} />
      </div>
    </Card>
  );
}

function Rows({
  title,
  states,
  of,
  to,
}: {
  title: string;
  states: readonly (keyof States)[];
  of: States;
  to: (state: string) => string;
}) {
  const most = Math.max(1, ...states.map((state) => of[state]));
  return (
    <table className="overview-bars">
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col">
            <span className="unseen">Number</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {states.map((state) => (
          <tr key={state}>
            <th scope="row">
              <Tag of={state} />
              <span className="overview-bar" style={{ width: `${(100 * of[state]) / most}%` }} />
            </th>
            <td className="end">
              <Link to={to(state)}>{of[state]}</Link>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
