// SPDX-License-Identifier: Apache-2.0
// What each planner made of the same traffic, and beside it, if wanted, what another run made of its own.
import { at } from "../../api/client";
import type { Job, Page } from "../../api/types";
import { useQuery } from "../../api/use";
import { local } from "../../format/time";
import { Card, Duration, Facts, Notice, SelectField, Share, Volume } from "../../ui";
import { text, useUrlState } from "../../url-state";
import { jobName } from "../jobs/words";
import { Comparison } from "./comparison";
import type { SimulationResult } from "./result";
import { ByLink, ByPlanner, ByRate, Refusals } from "./simulation-tables";

const STATE = { with: text() };
const ALONE = "";

export function Simulation({ job }: { job: Job }) {
  const result = job.result as unknown as SimulationResult;
  const [state, setState] = useUrlState(STATE);
  const done = useQuery<Page<Job>>("/v1/simulations?state=DONE&limit=200");
  const other = useQuery<Job>(state.with === ALONE ? null : at`/v1/simulations/${state.with}`);
  const others = (done.data?.items ?? []).filter((one) => one.id !== job.id);
  const options = [
    { value: ALONE, label: "no other run" },
    ...others.map((one) => ({ value: one.id, label: `${local(one.created, new Date())} · ${jobName(one)}` })),
  ];
  return (
    <>
      <Workload of={result} />
      <Card
        title="Planners"
        actions={
          <SelectField label="Compare with" options={options} value={state.with} onChange={(id) => setState({ with: id })} />
        }
      >
        {other.problem && <Notice tone="warn">The other run cannot be shown: {other.problem.detail}</Notice>}
        {other.data?.result ? <Comparison one={job} other={other.data} /> : <ByPlanner planners={result.planners} />}
      </Card>
      <div className="columns">
        <Picture job={job} />
        {other.data?.result && <Picture job={other.data} />}
      </div>
      <ByRate planners={result.planners} />
      <ByLink planners={result.planners} />
      <Refusals planners={result.planners} />
    </>
  );
}

function Workload({ of: { workload } }: { of: SimulationResult }) {
  return (
    <Card title="Traffic">
      <Facts
        items={[
          ["Requests", workload.requests],
          ["Volume", <Volume bytes={workload.bytes} />],
          ["Mean size", <Volume bytes={workload.mean_bytes} />],
          ["Offered load", <Share of={workload.offered_load} />],
          ["Arrivals over", <Duration s={workload.last_arrival_s} />],
          ["All done after", <Duration s={workload.horizon_s} />],
        ]}
      />
    </Card>
  );
}

function Picture({ job }: { job: Job }) {
  return (
    <figure className="card job-picture">
      <img
        src={at`/v1/simulations/${job.id}/plot.png`}
        alt={`Plot of the simulation ${jobName(job)}; its figures are in the tables`}
        loading="lazy"
      />
      <figcaption className="muted">{jobName(job)}</figcaption>
    </figure>
  );
}
