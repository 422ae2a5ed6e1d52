// SPDX-License-Identifier: Apache-2.0
// Re-optimise: which transfers may move, and what shall become better. Nothing moves before somebody has looked and applies it.

import { to } from "../../addresses";
import { newKey, post } from "../../api/client";
import type { Job, Link as NetworkLink, Page, Transfer } from "../../api/types";
import { invalidate, useAction, useQuery } from "../../api/use";
import { linkName, transferName } from "../../format/names";
import { navigate } from "../../router";
import { Button, Card, DurationField, Refusal, SelectField, TextField } from "../../ui";
import { useUrlState } from "../../url-state";
import { NamesField } from "./names-field";
import { PLAN, type PlanForm, planBody, planLacks } from "./plan-body";
import { OBJECTIVES } from "./words";

const SCOPES = [
  { value: "all", label: "All that may move" },
  { value: "project", label: "Those of a project" },
  { value: "links", label: "Those booked on some links" },
  { value: "transfers", label: "Some transfers" },
] as const;

export function PlanFormCard({ onClose }: { onClose: () => void }) {
  const [form, setForm] = useUrlState(PLAN);
  const start = useAction(() => post<Job>("/v1/plans", planBody(form), { key: newKey() }));
  const lacks = planLacks(form);
  const run = async (): Promise<void> => {
    const job = await start.run();
    if (!job) return;
    invalidate("/v1/plans");
    navigate(to.job(job.kind, job.id));
  };
  const set = (change: Partial<PlanForm>): void => {
    start.reset();
    setForm(change);
  };
  const actions = (
    <>
      {lacks && <span className="muted">{lacks}</span>}
      <Button onClick={onClose}>Close</Button>
      <Button kind="primary" busy={start.busy} disabled={lacks !== undefined} onClick={() => void run()}>
        Start re-optimisation
      </Button>
    </>
  );
  return (
    <Card title="New re-optimisation" actions={actions}>
      <p className="muted">
        What has not yet been sent is planned anew, all transfers together. Every promise is kept, and nothing changes before you
        apply the result.
      </p>
      <Refusal problem={start.problem} />
      <form className="form" aria-label="Re-optimisation" noValidate onSubmit={(event) => event.preventDefault()}>
        <SelectField
          label="Objective"
          hint={OBJECTIVES.find((one) => one.value === form.objective)?.means}
          options={OBJECTIVES}
          value={form.objective}
          onChange={(objective) => set({ objective })}
        />
        <SelectField label="Transfers" options={SCOPES} value={form.scope} onChange={(scope) => set({ scope })} />
        {form.scope === "project" && (
          <TextField
            label="Project"
            value={form.project}
            onChange={(project) => set({ project })}
            error={start.problem?.of("project")}
          />
        )}
        {form.scope === "links" && <LinksField form={form} set={set} error={start.problem?.of("links")} />}
        {form.scope === "transfers" && <TransfersField form={form} set={set} error={start.problem?.of("transfers")} />}
        <DurationField
          label="Time for the solver"
          value={form.time_limit_s}
          onChange={(limit) => set({ time_limit_s: limit ?? 30 })}
          error={start.problem?.of("time_limit_s")}
        />
        <DurationField
          label="Time to look at it"
          hint="so long it can be applied; what is booked until then stays"
          value={form.review_s}
          onChange={(review) => set({ review_s: review ?? 120 })}
          error={start.problem?.of("review_s")}
        />
      </form>
    </Card>
  );
}

interface ScopeProps {
  form: PlanForm;
  set: (change: Partial<PlanForm>) => void;
  error: string | undefined;
}

function LinksField({ form, set, error }: ScopeProps) {
  const network = useQuery<NetworkLink[]>("/v1/links");
  const all = (network.data ?? []).map((link) => ({ id: link.id, name: linkName(link) }));
  return <NamesField label="Links" all={all} chosen={form.link} onChange={(link) => set({ link })} error={error} />;
}

function TransfersField({ form, set, error }: ScopeProps) {
  const live = useQuery<Page<Transfer>>("/v1/transfers?state=RESERVED&state=ACTIVE&limit=1000");
  const all = (live.data?.items ?? []).map((transfer) => ({ id: transfer.id, name: transferName(transfer) }));
  return (
    <NamesField
      label="Chosen transfers"
      all={all}
      chosen={form.transfer}
      onChange={(transfer) => set({ transfer })}
      error={error}
    />
  );
}
