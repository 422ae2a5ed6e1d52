// SPDX-License-Identifier: Apache-2.0
// One event whole: before and after, side by side, what changed first.
import { useState } from "react";
import type { BrokerEvent } from "../../api/types";
import { actionName } from "../../format/names";
import { Button, CheckField, Copy, Dialog, Facts, Time } from "../../ui";
import { difference, fieldName, type Row } from "./difference";
import { actorName, kindName, Subject } from "./names";
import { Value } from "./value";

export function Details({ of, onClose }: { of: BrokerEvent; onClose: () => void }) {
  return (
    <Dialog
      open
      wide
      title={actionName(of.action)}
      onClose={onClose}
      actions={
        <>
          <Copy text={JSON.stringify(of, null, 1)} label="Copy as JSON" />
          <Button kind="primary" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <Facts
        items={[
          ["At", <Time key="at" at={of.at} />],
          [
            "By",
            <span key="by" title={of.actor}>
              {actorName(of)}
            </span>,
          ],
          [kindName(of.subject_kind), <Subject key="subject" of={of} />],
        ]}
      />
      <Difference before={of.before} after={of.after} />
    </Dialog>
  );
}

/** Before and after as a table. Of what was made or removed there is one side only. */
export function Difference({ before, after }: Pick<BrokerEvent, "before" | "after">) {
  const [all, setAll] = useState(false);
  const rows = difference(before, after);
  const changed = rows.filter((row) => row.changed);
  if (rows.length === 0) return <p className="muted">The log keeps nothing more of it.</p>;
  return (
    <>
      {changed.length < rows.length && (
        <CheckField label={`Also what stayed (${rows.length - changed.length})`} checked={all} onChange={setAll} />
      )}
      {changed.length === 0 && !all ? (
        <p className="muted">No field that the log keeps is different.</p>
      ) : (
        <Sides rows={all ? rows : changed} before={before !== null} after={after !== null} />
      )}
    </>
  );
}

function Sides({ rows, before, after }: { rows: readonly Row[]; before: boolean; after: boolean }) {
  return (
    <table className="difference">
      <caption className="unseen">Before and after</caption>
      <thead>
        <tr>
          <th scope="col">Field</th>
          {before && <th scope="col">Before</th>}
          {after && <th scope="col">After</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.field} className={row.changed && before && after ? "changed" : undefined}>
            <th scope="row" title={row.field}>
              {fieldName(row.field)}
            </th>
            {before && (
              <td>
                {row.changed && after ? (
                  <del>
                    <Value field={row.field} of={row.before} />
                  </del>
                ) : (
                  <Value field={row.field} of={row.before} />
                )}
              </td>
            )}
            {after && (
              <td>
                {row.changed && before ? (
                  <ins>
                    <Value field={row.field} of={row.after} />
                  </ins>
                ) : (
                  <Value field={row.field} of={row.after} />
                )}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
