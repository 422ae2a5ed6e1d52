// SPDX-License-Identifier: Apache-2.0
// Applying a re-optimisation: all of it or nothing, and only while the network is as it was when it was computed.
import { useMemo, useState } from "react";
import { to } from "../../addresses";
import { at, newKey, post } from "../../api/client";
import type { Job, Link as NetworkLink } from "../../api/types";
import { invalidate, useAction, useQuery } from "../../api/use";
import { linkName } from "../../format/names";
import { useNow } from "../../format/use-now";
import { navigate } from "../../router";
import { Button, Confirm, Notice, Time, toast } from "../../ui";
import { counted } from "../jobs/words";
import { balance, type Gain, type Validity, validity } from "./changes";
import type { PlanResult } from "./result";

interface ApplyProps {
  job: Job;
  result: PlanResult;
  gains: readonly Gain[];
}

export function ApplyPlan({ job, result, gains }: ApplyProps) {
  const now = useNow().getTime() / 1000;
  const late = !validity(result, undefined, now).holds;
  const links = useQuery<NetworkLink[]>(late ? null : "/v1/links");
  const versions = useMemo(() => links.data && new Map(links.data.map((link) => [link.id, link.version])), [links.data]);
  const found = validity(result, versions, now);
  const [asked, setAsked] = useState(false);
  const apply = useAction(() => post<Job>(at`/v1/plans/${job.id}/apply`, undefined, { revision: job.revision }));
  const book = async (): Promise<void> => {
    if ((await apply.run()) === undefined) {
      invalidate("/v1/links");
      return;
    }
    setAsked(false);
    toast(`Applied: ${counted(result.changes_total, "transfer")} moved`);
    invalidate("/v1/");
  };
  if (!found.holds) return <Outdated job={job} why={found} links={links.data ?? []} />;
  return (
    <Notice tone="busy">
      <div className="row apart">
        <span>
          Nothing has been changed yet. It can be applied until <Time at={result.apply_by} /> (
          <Time at={result.apply_by} relative />
          ), while nobody books on its links.
        </span>
        <Button kind="primary" onClick={() => setAsked(true)}>
          Apply
        </Button>
      </div>
      <Confirm
        open={asked}
        onClose={() => {
          apply.reset();
          setAsked(false);
        }}
        title="Apply the re-optimisation?"
        verb={`Move ${counted(result.changes_total, "transfer")}`}
        busy={apply.busy}
        problem={apply.problem}
        onConfirm={() => void book()}
      >
        <WhatItDoes result={result} gains={gains} />
      </Confirm>
    </Notice>
  );
}

function WhatItDoes({ result, gains }: { result: PlanResult; gains: readonly Gain[] }) {
  const { earlier, later, moved } = balance(gains);
  return (
    <>
      <p>
        {counted(result.changes_total, "transfer")} {result.changes_total === 1 ? "gets a new plan" : "get new plans"} from{" "}
        <Time at={result.cut} /> on: {earlier} end earlier, {later} later, {moved} take another path.
      </p>
      <p>No promise is broken by it. All of it is booked, or nothing.</p>
    </>
  );
}

interface OutdatedProps {
  job: Job;
  why: Exclude<Validity, { holds: true }>;
  links: readonly NetworkLink[];
}

const MOST_NAMED = 3;

function Outdated({ job, why, links }: OutdatedProps) {
  const again = useAction(() => post<Job>("/v1/plans", job.request, { key: newKey() }));
  const ask = async (): Promise<void> => {
    const next = await again.run();
    if (!next) return;
    invalidate("/v1/plans");
    navigate(to.job(next.kind, next.id));
  };
  const names =
    why.why === "links"
      ? why.links
          .map((id) => links.find((link) => link.id === id))
          .map((link, index) => (link ? linkName(link) : (why.links[index] ?? "")))
      : [];
  const rest = names.length - MOST_NAMED;
  return (
    <Notice tone="warn">
      <div className="row apart">
        <span>
          <strong>Outdated.</strong>{" "}
          {why.why === "late"
            ? "The time in which it could be applied is over."
            : `Something was booked, given back or changed on ${names.slice(0, MOST_NAMED).join(", ")}${rest > 0 ? ` and ${counted(rest, "other link")}` : ""} since it was computed.`}{" "}
          Nothing was changed by it. {again.problem?.detail}
        </span>
        <Button busy={again.busy} onClick={() => void ask()}>
          Compute it anew
        </Button>
      </div>
    </Notice>
  );
}
