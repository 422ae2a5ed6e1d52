// SPDX-License-Identifier: Apache-2.0
// Is a host up, and does it take transfers? In words.
import type { Host } from "../../api/types";
import { Tag, type Tone } from "../../ui";

const STATES: Record<Host["state"], { tone: Tone; word: string; means: string }> = {
  up: { tone: "good", word: "Up", means: "Its agent was heard of lately" },
  late: { tone: "warn", word: "Late", means: "Its agent has been silent for half of the time after which it counts as down" },
  down: { tone: "bad", word: "Down", means: "Its agent is silent" },
  stopped: { tone: "bad", word: "Stopped", means: "Its agent said goodbye" },
};

export function StateTags({ host }: { host: Pick<Host, "state" | "drained"> }) {
  const { tone, word, means } = STATES[host.state];
  return (
    <span className="row">
      <Tag tone={tone} title={means}>
        {word}
      </Tag>
      {host.drained && (
        <Tag tone="idle" title="It finishes what it has and takes nothing new">
          Drained
        </Tag>
      )}
    </span>
  );
}
