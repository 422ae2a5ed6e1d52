// SPDX-License-Identifier: Apache-2.0
// Which actions a transfer allows now, and to whom: `submit` for one's own, `operate` for all. The broker decides.
import type { Transfer } from "../../api/types";
import { isLive } from "../transfers/followed";

export const ACTIONS = ["commit", "resume", "pause", "deadline", "priority", "rates", "cancel"] as const;
export type ActionName = (typeof ACTIONS)[number];

/** What its state allows, whoever asks. */
export function possible(transfer: Pick<Transfer, "state" | "paused">): readonly ActionName[] {
  if (!isLive(transfer)) return [];
  const held = transfer.state === "HELD";
  return ACTIONS.filter((action) => {
    if (action === "commit") return held;
    if (action === "pause") return !held && !transfer.paused;
    if (action === "resume") return !held && transfer.paused;
    return true;
  });
}

interface Person {
  id: string;
  submits: boolean;
  operates: boolean;
}

/** Why nothing can be done; undefined where something can. */
export function barred(transfer: Pick<Transfer, "state" | "owner">, who: Person): string | undefined {
  if (!isLive(transfer)) return "It is over: nothing of it can be changed any more.";
  if (who.operates || (who.submits && who.id === transfer.owner)) return undefined;
  if (who.submits) return "It was submitted with another token: changing it needs the scope operate.";
  return "You may look, not change: that needs the scope operate, or submit for your own transfers.";
}
