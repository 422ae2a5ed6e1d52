// SPDX-License-Identifier: Apache-2.0
// The chain of a transfer: its predecessor, the signal that starts it, and its successors.
import type { Transfer } from "../../api/types";
import { duration } from "../../format/time";
import { Card, Facts, Tag, Time } from "../../ui";
import { isLive } from "../transfers/followed";
import { TransferName } from "./transfer-name";

const SIGNALS: Record<string, string> = {
  clock: "its booked time, by the clock",
  direct: "a word from the sender before it",
  broker: "a word from the broker",
};
const ON_TIMEOUT: Record<string, string> = { start: "it begins all the same", cancel: "it is canceled" };
const ON_OVERRUN: Record<string, string> = { delay: "this one is held up", fallback: "that one goes on at its fallback rate" };

interface Signal {
  kind?: string;
  timeout_s?: number | null;
  on_timeout?: string;
  on_overrun?: string;
}

export function Chain({ transfer, successors }: { transfer: Transfer; successors: readonly Transfer[] }) {
  if (!transfer.after && successors.length === 0) {
    return (
      <Card title="Chain">
        <p className="muted">It waits for no other transfer, and none waits for it.</p>
      </Card>
    );
  }
  const signal = (transfer.signal ?? {}) as Signal;
  return (
    <Card title="Chain">
      <Facts
        items={[
          ["Begins after", transfer.after ? <TransferName id={transfer.after} /> : "no other transfer"],
          ["Start signal", transfer.after ? (SIGNALS[signal.kind ?? "direct"] ?? signal.kind) : null],
          [
            "If no signal comes",
            transfer.after
              ? `${signal.timeout_s ? `after ${duration(signal.timeout_s)} ` : ""}${ON_TIMEOUT[signal.on_timeout ?? "start"]}`
              : null,
          ],
          ["If that one is late", transfer.after ? ON_OVERRUN[signal.on_overrun ?? "delay"] : null],
        ]}
      />
      {successors.length > 0 && (
        <div>
          <h3>Begin when it ends</h3>
          <ul className="transfer-successors">
            {successors.map((next) => (
              <li key={next.id} className="row">
                <TransferName id={next.id} /> <Tag of={next.state} /> {isLive(next) && <Time at={next.plan.start} />}
              </li>
            ))}
          </ul>
        </div>
      )}
    </Card>
  );
}
