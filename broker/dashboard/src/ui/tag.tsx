// SPDX-License-Identifier: Apache-2.0
// The state of a thing: a word, a shape and a colour that say the same.
import type { ReactNode } from "react";
import { Icon } from "./icons";
import "./tag.css";

export type Tone = "good" | "warn" | "bad" | "busy" | "idle" | "plain";

const STATES: Record<string, { tone: Tone; word: string; means: string }> = {
  HELD: { tone: "warn", word: "Held", means: "Room is kept until it is committed or the hold ends" },
  RESERVED: { tone: "plain", word: "Reserved", means: "Booked; it has not begun" },
  ACTIVE: { tone: "busy", word: "Active", means: "Under way" },
  FINISHED: { tone: "good", word: "Finished", means: "All bytes have arrived" },
  FAILED: { tone: "bad", word: "Failed", means: "It ended without having arrived" },
  CANCELED: { tone: "idle", word: "Canceled", means: "Somebody ended it" },
  EXPIRED: { tone: "warn", word: "Expired", means: "Its time passed before it was committed or finished" },
  QUEUED: { tone: "plain", word: "Queued", means: "Waits for a worker" },
  RUNNING: { tone: "busy", word: "Running", means: "A worker is at it" },
  DONE: { tone: "good", word: "Done", means: "Its result is there" },
};

type TagProps = { of: string } | { tone: Tone; children: ReactNode; title?: string };

/** <Tag of="ACTIVE" /> for a state of a transfer or a job, or <Tag tone="warn">drained</Tag>. */
export function Tag(props: TagProps) {
  if ("of" in props) {
    const { tone, word, means } = STATES[props.of] ?? { tone: "plain", word: props.of, means: undefined };
    return (
      <Tag tone={tone} title={means}>
        {word}
      </Tag>
    );
  }
  return (
    <span className={`tag ${props.tone}`} title={props.title}>
      <Icon name={props.tone} />
      {props.children}
    </span>
  );
}

export const stateName = (state: string): string => STATES[state]?.word ?? state;
