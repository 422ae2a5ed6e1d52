// SPDX-License-Identifier: Apache-2.0
// A new window: for a while less of the link may be used.
import { useState } from "react";
import { at, post, url } from "../../api/client";
import type { Link, Schemas } from "../../api/types";
import { linkName } from "../../format/names";
import { duration, iso, seconds } from "../../format/time";
import type { Range } from "../../plot/steps";
import { RateField, SelectField, TextField, TimeField } from "../../ui";
import { ChangeDialog, type OnBroken } from "./change-dialog";
import type { Settled } from "./effect";
import { PolicyField } from "./policy-field";

type WindowBody = Schemas["WindowBody"];
type Kind = WindowBody["kind"];

const KINDS: readonly { value: Kind; label: string }[] = [
  { value: "maintenance", label: "Maintenance" },
  { value: "outage", label: "Outage" },
  { value: "background", label: "Background traffic" },
];
const LONGEST_REASON = 200;

export function WindowDialog({ link, range, onClose }: { link: Link; range: Range; onClose: () => void }) {
  const [kind, setKind] = useState<Kind>("maintenance");
  const [begin, setBegin] = useState<string | null>(iso(range[0]));
  const [end, setEnd] = useState<string | null>(iso(range[1]));
  const [bps, setBps] = useState<number | null>(0);
  const [reason, setReason] = useState("");
  const [policy, setPolicy] = useState<OnBroken>("replan");
  const lasting = begin !== null && end !== null ? seconds(end) - seconds(begin) : null;
  const backwards = lasting !== null && lasting <= 0;
  const body: WindowBody | null =
    begin === null || end === null || bps === null || backwards
      ? null
      : { begin, end, bps, kind, reason: reason.trim() || null, on_broken: policy };
  const ask = (preview: boolean): Promise<Settled> => post(url(at`/v1/links/${link.id}/windows`, preview ? { preview } : {}), body);
  return (
    <ChangeDialog
      title={`New window on ${linkName(link)}`}
      verb="Create window"
      done="Window created"
      change={body && JSON.stringify({ ...body, reason: null, kind: null, on_broken: null })}
      policy={policy}
      ask={ask}
      onClose={onClose}
    >
      <div className="form">
        <SelectField label="Kind" value={kind} onChange={setKind} options={KINDS} />
        <RateField label="May still be used" hint="0: nothing at all" required value={bps} onChange={setBps} />
        <TimeField label="Begin" required value={begin} onChange={setBegin} />
        <TimeField
          label="End"
          required
          value={end}
          onChange={setEnd}
          error={backwards && "must lie after the begin"}
          hint={lasting !== null && duration(lasting)}
        />
        <TextField
          label="Reason"
          hint="Who is told why their transfer is late reads this"
          maxLength={LONGEST_REASON}
          value={reason}
          onChange={setReason}
        />
        <PolicyField value={policy} onChange={setPolicy} />
      </div>
    </ChangeDialog>
  );
}
