// SPDX-License-Identifier: Apache-2.0
// Is it kept? In a word, a shape and a colour; why, on hover and in a sentence.
import type { Transfer } from "../../api/types";
import { duration, local, seconds } from "../../format/time";
import { Tag, type Tone } from "../../ui";
import { finishOf } from "./finish";
import type { Outlook } from "./followed";

const SHOWN: Record<NonNullable<Outlook["promise"]>, { tone: Tone; word: string }> = {
  kept: { tone: "good", word: "Kept" },
  at_risk: { tone: "warn", word: "At risk" },
  broken: { tone: "bad", word: "Broken" },
};

export function PromiseTag({ outlook }: { outlook: Outlook | null | undefined }) {
  if (!outlook?.promise) return null;
  const { tone, word } = SHOWN[outlook.promise];
  return (
    <Tag tone={tone} title={promiseWords(outlook)}>
      {word}
    </Tag>
  );
}

/** "Promise at risk: the agent of one of its hosts is silent." */
export function promiseWords({ promise, detail }: Outlook): string {
  if (!promise) return "Nothing is promised now.";
  return `Promise ${SHOWN[promise].word.toLowerCase()}: ${detail ?? "no reason given"}.`;
}

const NEVER_DONE: ReadonlySet<Transfer["state"]> = new Set(["FAILED", "CANCELED", "EXPIRED"]);

/** By how much the finish, that was or is expected, misses the one that was promised; below a second it does not. */
export function lateness(transfer: Transfer): number {
  const finish = finishOf(transfer);
  if (NEVER_DONE.has(transfer.state)) return 0; // its end is no finish
  if (finish === null || transfer.promised_finish === null) return 0;
  const late = seconds(finish) - seconds(transfer.promised_finish);
  return Math.abs(late) < 1 ? 0 : late;
}

export const latenessWords = (late: number): string => `${duration(Math.abs(late))} ${late > 0 ? "late" : "early"}`;

/** For a table: the word, and by how much. */
export function PromiseKept({ of }: { of: Transfer }) {
  const late = of.outlook?.promise ? lateness(of) : 0;
  return (
    <span className="transfers-promise" title={of.promised_finish ? `Promised: ${local(of.promised_finish)}` : undefined}>
      <PromiseTag outlook={of.outlook} />
      {late !== 0 && <span className="muted">{latenessWords(late)}</span>}
    </span>
  );
}
