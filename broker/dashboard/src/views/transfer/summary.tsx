// SPDX-License-Identifier: Apache-2.0
// The summary of a transfer: its promise, why it waits, its progress and its expected finish.
import type { Transfer } from "../../api/types";
import { share } from "../../format/units";
import { Card, Facts, Notice, Rate, Time, Volume } from "../../ui";
import { Finish } from "../transfers/finish";
import { isLive } from "../transfers/followed";
import { PlanMeter } from "../transfers/plan-meter";
import { progress } from "../transfers/progress";
import { lateness, latenessWords, promiseWords } from "../transfers/promise";
import { limitedBy, reasonDetail, reasonWords } from "../transfers/reasons";
import { LinkName } from "./link-names";
import { TransferName } from "./transfer-name";

const TONES = { kept: "good", at_risk: "warn", broken: "bad" } as const;

export function Summary({ transfer }: { transfer: Transfer }) {
  const { outlook } = transfer;
  return (
    <Card>
      {outlook && outlook.promise !== null && outlook.promise !== "kept" && (
        <Notice tone={TONES[outlook.promise]}>{promiseWords(outlook)}</Notice>
      )}
      <Waits transfer={transfer} />
      <PlanMeter of={progress(transfer)} />
      <Facts
        items={[
          ["From", transfer.source],
          ["To", transfer.destination],
          ["Volume", transfer.volume_bytes === null ? null : <Volume bytes={transfer.volume_bytes} />],
          ["Arrived", transfer.mode === "reserve" ? "not counted: it is only booked" : <Volume bytes={transfer.bytes_done} />],
          ["Planned by now", outlook ? <Volume bytes={outlook.planned_bytes} /> : null],
          [isLive(transfer) ? "Expected to finish" : "Ended", <Finish of={transfer} />],
          ["Promised", <Promised transfer={transfer} />],
          ["Deadline", transfer.deadline ? <Time at={transfer.deadline} /> : "none"],
          ["Rate measured", transfer.measured_bps === null ? null : <Measured transfer={transfer} />],
          ["Began", transfer.actual_start ? <Time at={transfer.actual_start} /> : null],
        ]}
      />
    </Card>
  );
}

function Waits({ transfer: { waiting_reason: reason } }: { transfer: Transfer }) {
  if (!reason) return null;
  const by = limitedBy(reason);
  const detail = reasonDetail(reason);
  return (
    <Notice tone={reason.code === "promise_broken" || reason.code === "capacity_lost" ? "bad" : "idle"}>
      <span title={detail}>{reasonWords(reason)}</span>
      {by && (
        <>
          {": "}
          {by.kind === "link" ? <LinkName id={by.id} /> : <TransferName id={by.id} />}
        </>
      )}
      {reason.until && (
        <>
          , until <Time at={reason.until} />
        </>
      )}
      .
    </Notice>
  );
}

function Promised({ transfer }: { transfer: Transfer }) {
  const late = lateness(transfer);
  return (
    <>
      <Time at={transfer.promised_finish} />
      {late !== 0 && <span className="muted"> ({latenessWords(late)})</span>}
    </>
  );
}

function Measured({ transfer: { measured_bps, outlook } }: { transfer: Transfer }) {
  return (
    <>
      <Rate bps={measured_bps} />
      {typeof outlook?.applied_bps === "number" && (
        <span className="muted">
          {" "}
          of <Rate bps={outlook.applied_bps} /> applied
        </span>
      )}
      {typeof outlook?.share === "number" && <span className="muted">, {share(outlook.share)} lately</span>}
    </>
  );
}
