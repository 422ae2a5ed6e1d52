// SPDX-License-Identifier: Apache-2.0
// One job: what was asked, how far it is, and what came of it.

import { to, type ViewProps } from "../../addresses";
import { at, post } from "../../api/client";
import { Problem } from "../../api/problem";
import { useMay, useSession } from "../../api/session";
import type { Job } from "../../api/types";
import { invalidate, useAction, useQuery } from "../../api/use";
import { prose } from "../../format/prose";
import { Answer, Button, ButtonLink, Card, Facts, Notice, Refusal, Tag, Time, toast, View } from "../../ui";
import { writeState } from "../../url-state";
import { JobProgress } from "../jobs/job-list";
import { PLAN, planForm } from "../jobs/plan-body";
import { formOf, SPECIFICATION } from "../jobs/specification";
import { apiOf, jobName, kindName, unfinished } from "../jobs/words";
import "./job.css";
import { Plan } from "./plan";
import { Simulation } from "./simulation";

const PROGRESS_MS = 1_000;

export default function JobView({ params }: ViewProps<"kind" | "id">) {
  const kind = params.kind === "plan" ? "plan" : "simulation";
  const path = apiOf(kind) + at`/${params.id}`;
  const job = useQuery<Job>(path);
  const open = job.data !== undefined && unfinished(job.data);
  // Events tell of states; how far a job is between them is only in its row.
  useQuery<Job>(open ? path : null, { everyMs: PROGRESS_MS });
  return (
    <View
      title={job.data ? jobName(job.data) : kindName(kind)}
      lead={job.data && <Tag of={job.data.state} />}
      actions={job.data && <Actions job={job.data} />}
    >
      <Answer of={job}>
        {(found) => (
          <div className="stack">
            <About job={found} />
            {found.error && <Refusal problem={problemOf(found.error)} />}
            {found.state === "CANCELED" && (
              <Notice tone="idle">It was canceled before it came to a result. Nothing was changed.</Notice>
            )}
            {found.state === "DONE" && (kind === "plan" ? <Plan job={found} /> : <Simulation job={found} />)}
          </div>
        )}
      </Answer>
    </View>
  );
}

function problemOf(error: Record<string, unknown>): Problem {
  return new Problem(Number(error.status ?? 500), "failed", String(error.title ?? "Failed"), prose(String(error.detail ?? "")));
}

function About({ job }: { job: Job }) {
  return (
    <Card>
      {unfinished(job) && (
        <div className="row" aria-live="polite">
          <JobProgress job={job} />
          <span className="muted">{job.cancel_requested ? "It is being stopped." : (job.stage ?? "Waits for a worker.")}</span>
        </div>
      )}
      <Facts
        items={[
          ["Kind", kindName(job.kind)],
          ["Asked by", <span title={job.owner}>{job.owner_name ?? "a token that is gone"}</span>],
          ["Asked", <Time at={job.created} />],
          ["Begun", job.started && <Time at={job.started} />],
          ["Ended", job.finished && <Time at={job.finished} />],
        ]}
      />
    </Card>
  );
}

function Actions({ job }: { job: Job }) {
  const may = useMay();
  const session = useSession();
  const cancel = useAction(() => post<Job>(at`/v1/${job.kind === "plan" ? "plans" : "simulations"}/${job.id}/cancel`));
  const stop = async (): Promise<void> => {
    if ((await cancel.run()) === undefined) return;
    toast("It is being stopped");
    invalidate(apiOf(job.kind));
  };
  const mayAsk = may(job.kind === "plan" ? "operate" : "submit");
  const mayStop = may("operate") || (job.kind === "simulation" && may("submit") && job.owner === session.id);
  return (
    <>
      <Refusal problem={cancel.problem} />
      {mayAsk && <ButtonLink to={againAt(job)}>Ask again, changed</ButtonLink>}
      {mayStop && unfinished(job) && (
        <Button busy={cancel.busy} disabled={job.cancel_requested} onClick={() => void stop()}>
          Cancel
        </Button>
      )}
    </>
  );
}

/** The form as it was filled in for this job. */
function againAt({ kind, request }: Job): string {
  const search = kind === "plan" ? writeState(PLAN, "", planForm(request)) : writeState(SPECIFICATION, "", formOf(request));
  return `${to.jobs()}?kind=${kind}&new=${kind}&${search.slice(1)}`;
}
