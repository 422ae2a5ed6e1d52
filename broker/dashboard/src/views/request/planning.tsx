// SPDX-License-Identifier: Apache-2.0
// The planner, the planners to compare with, and the limits of a plan: paths, splitting, steps.
import type { Planner } from "../../api/types";
import { plannerTitle } from "../../format/planners";
import { CheckField, DurationField, Field, SelectField } from "../../ui";
import { WholeField } from "./fields";
import { DEFAULT_PATHS, type PartProps } from "./form";
import { pathName } from "./use-network";

export function Planning(props: PartProps) {
  const { form, set, wrong, planners } = props;
  const bookable = planners.filter(({ books }) => books).map(({ name }) => name);
  const names = bookable.includes(form.planner) ? bookable : [...bookable, form.planner];
  return (
    <>
      <SelectField
        label="Planner"
        hint={planners.find((planner) => planner.name === form.planner)?.about}
        value={form.planner}
        onChange={(planner) => set({ planner })}
        options={names.map((name) => ({ value: name, label: plannerTitle(name) }))}
        error={wrong("planner")}
      />
      <fieldset className="request-compare">
        <legend>Compare with</legend>
        {planners
          .filter((planner) => planner.name !== form.planner)
          .map(({ name, about }) => (
            <label key={name} title={about}>
              <input
                type="checkbox"
                checked={form.compare.includes(name)}
                onChange={(event) => set({ compare: toggled(planners, form.compare, name, event.target.checked) })}
              />
              {plannerTitle(name)}
            </label>
          ))}
      </fieldset>
      <details className="request-more" open={hasOptions(props)}>
        <summary>Paths and changes of the rate</summary>
        <Options {...props} />
      </details>
    </>
  );
}

function hasOptions({ form }: PartProps): boolean {
  return (
    form.paths !== DEFAULT_PATHS ||
    form.path.length > 0 ||
    form.split ||
    form.shortest_segment_s !== null ||
    form.most_segments !== null
  );
}

function Options({ form, set, wrong, network }: PartProps) {
  return (
    <div className="stack">
      {form.path.length > 0 ? (
        <Field label="Only this path" error={wrong("path")} hint={pathName(form.path, network.links)}>
          {(wired) => (
            <button type="button" className="button plain" {...wired} onClick={() => set({ path: [] })}>
              Any path
            </button>
          )}
        </Field>
      ) : (
        <WholeField
          label="Paths"
          hint="how many of the shortest to choose from"
          min={1}
          max={16}
          value={form.paths}
          onChange={(paths) => set({ paths: paths ?? DEFAULT_PATHS })}
          error={wrong("paths")}
        />
      )}
      <CheckField label="Split over several paths at once" checked={form.split} onChange={(split) => set({ split })} />
      {wrong("split") && <p className="field-error">{wrong("split")}</p>}
      <div className="request-pair">
        <DurationField
          label="No step shorter than"
          value={form.shortest_segment_s}
          onChange={(shortest_segment_s) => set({ shortest_segment_s })}
          error={wrong("shortest_segment_s")}
        />
        <WholeField
          label="Most steps"
          min={1}
          value={form.most_segments}
          onChange={(most_segments) => set({ most_segments })}
          error={wrong("most_segments")}
        />
      </div>
    </div>
  );
}

/** In the planners' order. */
function toggled(planners: readonly Planner[], names: readonly string[], name: string, on: boolean): string[] {
  return on
    ? planners.map((planner) => planner.name).filter((one) => one === name || names.includes(one))
    : names.filter((one) => one !== name);
}
