// SPDX-License-Identifier: Apache-2.0
// "What if": the same made-up traffic through several planners, on the broker's own network or another.
import { useMemo } from "react";
import { to } from "../../addresses";
import { newKey, post } from "../../api/client";
import type { Job, Planner } from "../../api/types";
import { invalidate, useAction, useQuery } from "../../api/use";
import { plannerTitle } from "../../format/planners";
import { navigate } from "../../router";
import { Button, Card, Refusal } from "../../ui";
import { useUrlState } from "../../url-state";
import { Rules, Traffic } from "./simulation-parts";
import { documentOf, fieldOf, SPECIFICATION, type Specification, type SpecificationProps } from "./specification";

export function SimulationForm({ onClose }: { onClose: () => void }) {
  const [form, setForm] = useUrlState(SPECIFICATION);
  const { document, mistakes } = useMemo(() => documentOf(form), [form]);
  const start = useAction(() => post<Job>("/v1/simulations", document, { key: newKey() }));
  const run = async (): Promise<void> => {
    const job = await start.run();
    if (!job) return;
    invalidate("/v1/simulations");
    navigate(to.job(job.kind, job.id));
  };
  const set = (change: Partial<Specification>): void => {
    start.reset();
    setForm(change);
  };
  const wrong = (field: keyof Specification): string | undefined =>
    mistakes.find((mistake) => mistake.field === field)?.detail ??
    start.problem?.errors.find((error) => fieldOf(error.field) === field)?.detail;
  const actions = (
    <>
      <Button onClick={onClose}>Close</Button>
      <Button kind="primary" busy={start.busy} disabled={mistakes.length > 0} onClick={() => void run()}>
        Start simulation
      </Button>
    </>
  );
  return (
    <Card title="New simulation" actions={actions}>
      <Refusal problem={start.problem} />
      <form className="stack" aria-label="Simulation" noValidate onSubmit={(event) => event.preventDefault()}>
        <Planners form={form} set={set} wrong={wrong} />
        <Traffic form={form} set={set} wrong={wrong} />
        <Rules form={form} set={set} wrong={wrong} />
      </form>
    </Card>
  );
}

/** What only simulations know, beside the broker's planners: broker/simulate/choice.py. */
const ONLY_SIMULATED = [
  { name: "optimal:admitted", about: "Plans for as many requests as possible, by a solver" },
  { name: "optimal:volume", about: "Plans for as many bytes as possible, by a solver" },
  { name: "optimal:completion", about: "Plans for the least sum of finishes, by a solver" },
  { name: "ps", about: "A baseline: packets in queues, nothing planned" },
];

function Planners({ form, set, wrong }: SpecificationProps) {
  const registry = useQuery<Planner[]>("/v1/planners");
  const offered = [...(registry.data ?? []), ...ONLY_SIMULATED];
  const toggle = (name: string, on: boolean): void =>
    set({ planners: [...form.planners.filter((one) => one !== name), ...(on ? [name] : [])] });
  return (
    <fieldset className="jobs-planners">
      <legend>Planners to compare</legend>
      {offered.map(({ name, about }) => (
        <label key={name} title={about}>
          <input type="checkbox" checked={form.planners.includes(name)} onChange={(event) => toggle(name, event.target.checked)} />
          {plannerTitle(name)}
        </label>
      ))}
      {wrong("planners") && <span className="field-error">{wrong("planners")}</span>}
    </fieldset>
  );
}
