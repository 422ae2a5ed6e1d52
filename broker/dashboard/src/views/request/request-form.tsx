// SPDX-License-Identifier: Apache-2.0
// The request form. Each field is in the URL; an error of the broker stands at its field.
import type { ReactNode } from "react";
import { useMay } from "../../api/session";
import { CheckField, Choice, DurationField, RateField, TextField, TimeField, VolumeField } from "../../ui";
import { Delivery } from "./delivery";
import { PlaceField, WholeField } from "./fields";
import type { PartProps } from "./form";
import { Planning } from "./planning";

const SIZES = [
  { value: "volume", label: "A volume" },
  { value: "duration", label: "For a time" },
] as const;

/** `children`: its foot. */
export function RequestForm({ children, ...props }: PartProps & { children: ReactNode }) {
  return (
    <form className="card stack request-form" aria-label="Request" noValidate onSubmit={(event) => event.preventDefault()}>
      <What {...props} />
      <When {...props} />
      <Rates {...props} />
      <Planning {...props} />
      <Delivery {...props} />
      <Names {...props} />
      {children}
    </form>
  );
}

function What({ form, set, wrong, network: { places } }: PartProps) {
  return (
    <>
      <div className="request-pair">
        <PlaceField
          label="Source"
          value={form.source}
          onChange={(source) => set({ source })}
          places={places}
          error={wrong("source")}
        />
        <PlaceField
          label="Destination"
          value={form.destination}
          onChange={(destination) => set({ destination })}
          places={places}
          error={wrong("destination")}
        />
      </div>
      <div className="request-size">
        <Choice
          label="Move a volume, or hold capacity for a time"
          options={SIZES}
          value={form.size}
          onChange={(size) => set({ size })}
        />
        {form.size === "volume" ? (
          <VolumeField
            label="Volume"
            required
            value={form.volume_bytes}
            onChange={(volume_bytes) => set({ volume_bytes })}
            error={wrong("volume_bytes")}
          />
        ) : (
          <DurationField
            label="Duration"
            required
            hint="capacity is held without a gap"
            value={form.duration_s}
            onChange={(duration_s) => set({ duration_s })}
            error={wrong("duration_s")}
          />
        )}
      </div>
    </>
  );
}

function When({ form, set, wrong }: PartProps) {
  return (
    <>
      <TimeField
        label="Not before"
        hint="now"
        value={form.not_before}
        onChange={(not_before) => set({ not_before })}
        error={wrong("not_before")}
      />
      <TimeField
        label="Deadline"
        hint="none: as early as it can"
        value={form.deadline}
        onChange={(deadline) => set({ deadline })}
        error={wrong("deadline")}
      />
    </>
  );
}

function Rates({ form, set, wrong }: PartProps) {
  return (
    <div className="request-pair">
      <RateField
        label="At most"
        placeholder="10G"
        hint="what the path carries"
        value={form.rate_max_bps}
        onChange={(rate_max_bps) => set({ rate_max_bps })}
        error={wrong("rate_max_bps")}
      />
      <RateField
        label="At least"
        placeholder="1G"
        hint="pauses are allowed"
        value={form.rate_min_bps}
        onChange={(rate_min_bps) => set({ rate_min_bps })}
        error={wrong("rate_min_bps")}
      />
    </div>
  );
}

function Names({ form, set, wrong }: PartProps) {
  const may = useMay();
  return (
    <>
      <div className="request-pair">
        <TextField label="Label" value={form.label} onChange={(label) => set({ label })} error={wrong("label")} />
        <TextField label="Project" value={form.project} onChange={(project) => set({ project })} error={wrong("project")} />
      </div>
      <WholeField
        label="Priority"
        hint="higher is more important"
        value={form.priority}
        onChange={(priority) => set({ priority: priority ?? 0 })}
        error={wrong("priority")}
      />
      <CheckField
        label="Gives way"
        hint="requests of higher priority may displace it"
        checked={form.best_effort}
        onChange={(best_effort) => set({ best_effort })}
      />
      {may("operate") && (
        <CheckField
          label="Displace others"
          hint="what does not fit may displace transfers of lower priority that give way"
          checked={form.preempt}
          onChange={(preempt) => set({ preempt })}
        />
      )}
      <CheckField
        label="Hold only"
        hint="room is kept until somebody commits it, or the hold ends"
        checked={form.hold}
        onChange={(hold) => set({ hold })}
      />
    </>
  );
}
