// SPDX-License-Identifier: Apache-2.0
// When it ended or will end, and how sure that is.
import type { Transfer } from "../../api/types";
import { duration, local, seconds } from "../../format/time";
import { Time } from "../../ui";
import { isLive } from "./followed";

/** Half the width of the range that eight in ten such transfers end in; below a second it is no news. */
export function spread({ outlook }: Pick<Transfer, "outlook">): number {
  if (!outlook?.earliest_finish || !outlook.latest_finish) return 0;
  const half = (seconds(outlook.latest_finish) - seconds(outlook.earliest_finish)) / 2;
  return half < 1 ? 0 : half;
}

export function finishOf(transfer: Transfer): string | null {
  if (!isLive(transfer)) return transfer.actual_finish;
  return transfer.paused ? null : (transfer.outlook?.expected_finish ?? transfer.plan.finish);
}

export function Finish({ of }: { of: Transfer }) {
  const sure = spread(of);
  const { outlook } = of;
  const range =
    sure > 0 && outlook?.earliest_finish && outlook.latest_finish
      ? `${local(outlook.earliest_finish)} to ${local(outlook.latest_finish)}, by its last reports`
      : undefined;
  return (
    <>
      <Time at={finishOf(of)} />
      {sure > 0 && (
        <span className="muted" title={range}>
          {" "}
          ± {duration(sure)}
        </span>
      )}
    </>
  );
}
