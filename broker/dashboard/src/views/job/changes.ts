// SPDX-License-Identifier: Apache-2.0
// Who gains and who loses by a re-optimisation, and whether it still holds.
import { seconds } from "../../format/time";
import type { PlanChange, PlanResult } from "./result";

export interface Gain {
  change: PlanChange;
  /** How much earlier it ends; less than nothing: later. */
  earlier: number;
  /** What is left until its promise is broken. */
  slack: number;
  moved: boolean;
}

export function gainOf(change: PlanChange): Gain {
  const { before, after, promised } = change;
  return {
    change,
    earlier: seconds(before.finish) - seconds(after.finish),
    slack: seconds(promised) - seconds(after.finish),
    moved: JSON.stringify(before.paths) !== JSON.stringify(after.paths),
  };
}

export interface Balance {
  earlier: number;
  later: number;
  moved: number;
}

const NOTICED_S = 0.001;

export function balance(gains: readonly Gain[]): Balance {
  return {
    earlier: gains.filter((gain) => gain.earlier > NOTICED_S).length,
    later: gains.filter((gain) => gain.earlier < -NOTICED_S).length,
    moved: gains.filter((gain) => gain.moved).length,
  };
}

export type Validity = { holds: true } | { holds: false; why: "late" } | { holds: false; why: "links"; links: string[] };

/** A result holds until `apply_by`, and only while every link is as it was. `versions`: of the links now, if known. */
export function validity(
  result: Pick<PlanResult, "apply_by" | "links">,
  versions: ReadonlyMap<string, number> | undefined,
  now: number,
): Validity {
  if (now > seconds(result.apply_by)) return { holds: false, why: "late" };
  const links = versions ? Object.entries(result.links).flatMap(([id, version]) => (versions.get(id) === version ? [] : [id])) : [];
  return links.length > 0 ? { holds: false, why: "links", links } : { holds: true };
}
