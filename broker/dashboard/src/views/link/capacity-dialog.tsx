// SPDX-License-Identifier: Apache-2.0
// Another capacity for a link, for good.
import { useState } from "react";
import { at, patch, url } from "../../api/client";
import type { Link } from "../../api/types";
import { linkName } from "../../format/names";
import { rate } from "../../format/units";
import { RateField } from "../../ui";
import { ChangeDialog, type OnBroken } from "./change-dialog";
import type { Settled } from "./effect";
import { PolicyField } from "./policy-field";

export function CapacityDialog({ link, onClose }: { link: Link; onClose: () => void }) {
  // What was read when the dialog opened: a change by somebody else in between is refused, not overwritten.
  const [revision] = useState(link.revision);
  const [bps, setBps] = useState<number | null>(link.capacity_bps);
  const [policy, setPolicy] = useState<OnBroken>("replan");
  const changed = bps !== null && bps !== link.capacity_bps;
  const ask = (preview: boolean): Promise<Settled> =>
    patch(url(at`/v1/links/${link.id}`, preview ? { preview } : {}), { capacity_bps: bps, on_broken: policy }, { revision });
  return (
    <ChangeDialog
      title={`Capacity of ${linkName(link)}`}
      verb="Change capacity"
      done="Capacity changed"
      change={changed ? String(bps) : null}
      policy={policy}
      ask={ask}
      onClose={onClose}
    >
      <div className="form">
        <RateField
          label="Capacity"
          required
          hint={`now ${rate(link.capacity_bps)}${link.mtu_bytes ? ", on the wire" : ""}`}
          value={bps}
          onChange={setBps}
        />
        <PolicyField value={policy} onChange={setPolicy} />
      </div>
    </ChangeDialog>
  );
}
