// SPDX-License-Identifier: Apache-2.0
// What is booked from and to a host, over time: the schedule's picture, for one place.

import { to } from "../../addresses";
import type { Link as NetworkLink, Schemas } from "../../api/types";
import { useQuery } from "../../api/use";
import { rate } from "../../format/units";
import { Answer, ButtonLink, Choice, Empty } from "../../ui";
import { maybe, number, oneOf, useUrlState } from "../../url-state";
import { Gantt } from "../schedule/gantt";
import { USUAL_S } from "../schedule/range";
import { question } from "../schedule/state";
import { TimeTools } from "../schedule/tools";
import { useLines } from "../schedule/use-lines";
import { useRange } from "../schedule/use-range";

const STATE = { from: maybe(), span: number(USUAL_S), way: oneOf(["both", "up", "down"], "both") };
const WAYS = [
  { value: "both", label: "Out and in" },
  { value: "up", label: "Out" },
  { value: "down", label: "In" },
] as const;
const NOTHING: readonly never[] = [];

export function Plan({ host }: { host: string }) {
  const [state, set] = useUrlState(STATE);
  const time = useRange(state, set);
  const links = useQuery<NetworkLink[]>("/v1/links");
  const nic = state.way === "both" ? "" : `${host}~${state.way}`;
  const schedule = useQuery<Schemas["Schedule"]>(question(nic ? { link: nic, host: "" } : { link: "", host }, time.settled), {
    keep: true,
  });
  const { lines, peak } = useLines(schedule.data?.items ?? NOTHING, links.data ?? NOTHING, nic ? { link: nic } : {}, time.settled);
  return (
    <>
      <div className="row apart">
        <Choice label="Direction" options={WAYS} value={state.way} onChange={(way) => set({ way })} />
        <TimeTools time={time} />
      </div>
      <Answer of={schedule}>
        {() => (
          <>
            <Gantt
              label={`Booked from and to ${host}: ${lines.length} transfers over time`}
              lines={lines}
              time={time}
              scale={peak}
              height="22rem"
            />
            {lines.length === 0 && (
              <Empty title="Nothing is booked here">No transfer of this host lies in this stretch of time.</Empty>
            )}
            <div className="row apart">
              <span className="muted">The height of a row is {rate(peak)}, the largest rate of all.</span>
              <ButtonLink kind="quiet" to={`${to.schedule()}?host=${encodeURIComponent(host)}`}>
                The whole schedule
              </ButtonLink>
            </div>
          </>
        )}
      </Answer>
    </>
  );
}
