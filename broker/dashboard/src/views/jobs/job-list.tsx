// SPDX-License-Identifier: Apache-2.0
// Jobs of one kind, newest first, live: events tell of every change of state, and while one is under way its progress is asked for.
import { useEffect } from "react";
import { to } from "../../addresses";
import { url } from "../../api/client";
import { usePages } from "../../api/pages";
import type { Job } from "../../api/types";
import { Answer, type Column, Duration, Empty, Link, Progress, Table, Tag, Time } from "../../ui";
import { apiOf, jobName, kindName, unfinished } from "./words";

const PROGRESS_MS = 2_000;

export function JobList({ kind, states }: { kind: Job["kind"]; states: readonly string[] }) {
  const jobs = usePages<Job>(url(apiOf(kind), { state: states, limit: 100 }));
  const active = jobs.items.some(unfinished);
  const { reload } = jobs;
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => !document.hidden && reload(), PROGRESS_MS);
    return () => clearInterval(timer);
  }, [active, reload]);
  const nothing = <Empty title={`No ${kindName(kind).toLowerCase()}${states.length > 0 ? " in this state" : " yet"}`} />;
  return (
    <Answer of={jobs} empty={(rows) => rows.length === 0 && nothing}>
      {(rows) => (
        <Table
          name={`${kind}-jobs`}
          caption={`${kindName(kind)}s`}
          columns={COLUMNS}
          rows={rows}
          rowKey={(job) => job.id}
          more={jobs.more}
          onMore={jobs.loadMore}
          all={jobs.all}
        />
      )}
    </Answer>
  );
}

const COLUMNS: Column<Job>[] = [
  { key: "what", title: "What", value: jobName, show: (job) => <Link to={to.job(job.kind, job.id)}>{jobName(job)}</Link> },
  { key: "state", title: "State", sort: true, width: "9rem", value: (job) => job.state, show: (job) => <Tag of={job.state} /> },
  { key: "progress", title: "Progress", width: "12rem", value: (job) => job.progress, show: (job) => <JobProgress job={job} /> },
  { key: "stage", title: "Doing", width: "14rem", value: (job) => job.stage },
  {
    key: "owner",
    title: "Asked by",
    width: "11rem",
    value: (job) => job.owner_name ?? "an old token",
    show: (job) => <span title={job.owner}>{job.owner_name ?? "an old token"}</span>,
  },
  {
    key: "created",
    title: "Asked",
    sort: true,
    width: "11rem",
    value: (job) => job.created,
    show: (job) => <Time at={job.created} />,
  },
  { key: "took_s", title: "Took", sort: true, align: "end", width: "8rem", value: took, show: (job) => <Duration s={took(job)} /> },
];

export function JobProgress({ job }: { job: Job }) {
  if (!unfinished(job)) return null;
  return <Progress value={job.state === "QUEUED" ? null : job.progress} label={`Progress of ${jobName(job)}`} />;
}

function took({ started, finished }: Job): number | null {
  return started !== null && finished !== null ? (Date.parse(finished) - Date.parse(started)) / 1000 : null;
}
