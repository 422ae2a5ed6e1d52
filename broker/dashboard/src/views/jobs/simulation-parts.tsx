// SPDX-License-Identifier: Apache-2.0
// The traffic that a simulation makes up, and the rules it is planned by.
import { CheckField, DurationField, Field, SelectField, TextField, VolumeField } from "../../ui";
import { NumberField } from "./number-field";
import type { SpecificationProps } from "./specification";

const ARRIVALS = [
  { value: "load", label: "Load of the busiest link" },
  { value: "rate", label: "Arrivals a second" },
  { value: "other", label: "A trace, given below" },
] as const;

const SIZES = [
  { value: "pareto", label: "Pareto: few files hold most bytes" },
  { value: "exponential", label: "Exponential" },
  { value: "fixed", label: "All alike" },
] as const;

export function Traffic(props: SpecificationProps) {
  const { form, set, wrong } = props;
  return (
    <div className="form">
      <NumberField
        label="Requests"
        min={1}
        max={200_000}
        value={form.requests}
        onChange={(requests) => set({ requests })}
        error={wrong("requests")}
      />
      <SelectField label="Arrivals" options={ARRIVALS} value={form.arrivals} onChange={(arrivals) => set({ arrivals })} />
      {form.arrivals === "load" && (
        <NumberField
          label="Load"
          step="any"
          hint="1: as much as it carries, if all take the shortest path"
          value={form.load}
          onChange={(load) => set({ load })}
          error={wrong("load")}
        />
      )}
      {form.arrivals === "rate" && (
        <NumberField
          label="Arrivals a second"
          step="any"
          value={form.arrivals_per_s}
          onChange={(arrivals_per_s) => set({ arrivals_per_s })}
          error={wrong("arrivals_per_s")}
        />
      )}
      <SelectField label="Sizes" options={SIZES} value={form.sizes} onChange={(sizes) => set({ sizes })} error={wrong("sizes")} />
      {form.sizes === "pareto" ? (
        <ParetoSizes {...props} />
      ) : (
        <VolumeField
          label="Mean size"
          value={form.mean_bytes}
          onChange={(mean) => set({ mean_bytes: mean ?? 1 })}
          error={wrong("mean_bytes")}
        />
      )}
      <TextField
        label="Rate limits"
        placeholder="1G:0.3, 5G:0.7"
        hint="each with its weight; empty: what the path carries"
        value={form.rates}
        onChange={(rates) => set({ rates })}
        error={wrong("rates")}
      />
      <Deadlines {...props} />
      <Leads {...props} />
      <TextField
        label="Nodes"
        hint="that send to each other; empty: all"
        value={form.nodes}
        onChange={(nodes) => set({ nodes })}
        error={wrong("nodes")}
      />
      <NumberField
        label="Seed"
        hint="the same seed draws the same requests"
        value={form.seed}
        onChange={(seed) => set({ seed })}
        error={wrong("seed")}
      />
    </div>
  );
}

function ParetoSizes({ form, set, wrong }: SpecificationProps) {
  return (
    <>
      <VolumeField
        label="Smallest"
        value={form.least_bytes}
        onChange={(least) => set({ least_bytes: least ?? 1 })}
        error={wrong("least_bytes")}
      />
      <VolumeField
        label="Largest"
        value={form.most_bytes}
        onChange={(most) => set({ most_bytes: most ?? 1 })}
        error={wrong("most_bytes")}
      />
      <NumberField label="Shape" step="any" value={form.shape} onChange={(shape) => set({ shape })} error={wrong("shape")} />
    </>
  );
}

function Deadlines({ form, set, wrong }: SpecificationProps) {
  return (
    <>
      <NumberField
        label="Share with a deadline"
        step="any"
        max={1}
        value={form.deadline_share}
        onChange={(deadline_share) => set({ deadline_share })}
        error={wrong("deadline_share")}
      />
      {form.deadline_share > 0 && (
        <>
          <NumberField
            label="Shortest deadline"
            step="any"
            min={1}
            hint="times what it takes alone at full rate"
            value={form.least_factor}
            onChange={(least_factor) => set({ least_factor })}
            error={wrong("least_factor")}
          />
          <NumberField
            label="Longest deadline"
            step="any"
            min={1}
            hint="times what it takes alone at full rate"
            value={form.most_factor}
            onChange={(most_factor) => set({ most_factor })}
            error={wrong("most_factor")}
          />
        </>
      )}
    </>
  );
}

function Leads({ form, set, wrong }: SpecificationProps) {
  return (
    <>
      <NumberField
        label="Share asked in advance"
        step="any"
        max={1}
        value={form.lead_share}
        onChange={(lead_share) => set({ lead_share })}
        error={wrong("lead_share")}
      />
      {form.lead_share > 0 && (
        <>
          <DurationField
            label="At least so long"
            value={form.least_seconds}
            onChange={(least) => set({ least_seconds: least ?? 0 })}
            error={wrong("least_seconds")}
          />
          <DurationField
            label="At most so long"
            value={form.most_seconds}
            onChange={(most) => set({ most_seconds: most ?? 0 })}
            error={wrong("most_seconds")}
          />
        </>
      )}
    </>
  );
}

export function Rules({ form, set, wrong }: SpecificationProps) {
  return (
    <details>
      <summary>Paths, batches, solvers, and everything else</summary>
      <div className="stack jobs-rules">
        <div className="form">
          <NumberField
            label="Paths"
            min={1}
            max={16}
            hint="how many there are to choose from"
            value={form.paths}
            onChange={(paths) => set({ paths })}
            error={wrong("paths")}
          />
          <DurationField
            label="No step shorter than"
            value={form.shortest_segment_s}
            onChange={(shortest_segment_s) => set({ shortest_segment_s })}
            error={wrong("shortest_segment_s")}
          />
          <NumberField
            label="Most steps"
            min={1}
            value={form.most_segments}
            onChange={(most_segments) => set({ most_segments })}
            error={wrong("most_segments")}
          />
          <DurationField
            label="Batch of joint planners"
            value={form.batch_s}
            onChange={(batch) => set({ batch_s: batch ?? 10 })}
            error={wrong("batch_s")}
          />
          <DurationField
            label="Solver, for each batch"
            value={form.solver_time_limit_s}
            onChange={(limit) => set({ solver_time_limit_s: limit ?? 10 })}
            error={wrong("solver_time_limit_s")}
          />
          <CheckField label="Split over several paths at once" checked={form.split} onChange={(split) => set({ split })} />
        </div>
        <Field
          label="Further members, as JSON"
          hint="matrix, trace, network (NET.json), begin, points: see docs/simulation.md"
          error={wrong("more")}
        >
          {(wired) => (
            <textarea
              rows={3}
              spellCheck={false}
              className="mono"
              {...wired}
              value={form.more}
              onChange={(event) => set({ more: event.target.value })}
            />
          )}
        </Field>
      </div>
    </details>
  );
}
