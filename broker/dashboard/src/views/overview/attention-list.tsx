// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { Card, Empty, Icon, Link } from "../../ui";
import { type Concern, lasting } from "./attention";

const DRIFT_LEAST_S = 10;
const MOST = 50;

/** `more`: of promises that are not listed, and where they are. */
export function AttentionList({
  concerns,
  now,
  more,
}: {
  concerns: readonly Concern[];
  now: number;
  more: { number: number; to: string };
}) {
  const [since] = useState(() => new Map<string, number>());
  const shown = lasting(concerns, since, now, DRIFT_LEAST_S);
  return (
    <Card title={<>Needs attention {shown.length > 0 && <span className="overview-count">{shown.length + more.number}</span>}</>}>
      {shown.length === 0 ? (
        <Empty title="All is well">No promise is at risk, every link is open and has room, every agent answers.</Empty>
      ) : (
        <div className="overview-concerns" role="region" aria-label="Needs attention" tabIndex={0}>
          <ul>
            {shown.slice(0, MOST).map((concern) => (
              <li key={concern.key} className={concern.tone}>
                <Icon name={concern.tone} />
                <div>
                  <Link to={concern.to}>{concern.name}</Link>
                  <div>{concern.why}</div>
                </div>
              </li>
            ))}
          </ul>
          {shown.length > MOST && <p className="muted">{shown.length - MOST} more are not listed.</p>}
          {more.number > 0 && <Link to={more.to}>{more.number} more promises at risk or broken</Link>}
        </div>
      )}
    </Card>
  );
}
