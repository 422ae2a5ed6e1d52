// SPDX-License-Identifier: Apache-2.0
// When is what booked, and how fast? All transfers, or those of a link or a host.

import type { Link, Schemas } from "../../api/types";
import { useQuery } from "../../api/use";
import { rate } from "../../format/units";
import { Answer, Empty, Notice, TabPanel, Tabs, View } from "../../ui";
import { useUrlState } from "../../url-state";
import { Gantt } from "./gantt";
import { Legend } from "./legend";
import type { Line } from "./rows";
import "./schedule.css";
import { MOST_TRANSFERS, question, type ScheduleState, STATE } from "./state";
import { ScheduleTable } from "./table";
import { TimeTools, Tools } from "./tools";
import { useLines } from "./use-lines";
import { type Shown, useRange } from "./use-range";

const NOTHING: readonly never[] = [];
const TABS = [
  { key: "chart", title: "Chart" },
  { key: "table", title: "Table" },
] as const;

export default function ScheduleView() {
  const [state, set] = useUrlState(STATE);
  const time = useRange(state, set);
  const links = useQuery<Link[]>("/v1/links");
  const schedule = useQuery<Schemas["Schedule"]>(question(state, time.settled), { keep: true });
  const { lines, counts, peak } = useLines(schedule.data?.items ?? NOTHING, links.data ?? NOTHING, state, time.settled);
  return (
    <View title="Schedule" actions={<TimeTools time={time} />}>
      <Tools state={state} set={set} links={links.data ?? NOTHING} />
      <Answer of={schedule}>
        {({ next }) => (
          <div className="stack">
            {next !== null && (
              <Notice tone="warn">
                There is more than the first {MOST_TRANSFERS} transfers of this time: zoom in, or choose a link or a host.
              </Notice>
            )}
            <div className="row apart">
              <Tabs label="Schedule as" tabs={TABS} value={state.show} onChange={(show) => set({ show })} />
              <Legend counts={counts} hidden={state.hide} onHide={(hide) => set({ hide })} />
            </div>
            <TabPanel of="chart" value={state.show}>
              <Chart lines={lines} state={state} time={time} peak={peak} />
            </TabPanel>
            <TabPanel of="table" value={state.show}>
              {lines.length === 0 ? <Nothing state={state} /> : <ScheduleTable lines={lines} />}
            </TabPanel>
          </div>
        )}
      </Answer>
    </View>
  );
}

function Chart({ lines, state, time, peak }: { lines: readonly Line[]; state: ScheduleState; time: Shown; peak: number }) {
  const label = `${lines.filter((line) => line.is === "row").length} rows of booked transfers over time`;
  return (
    <>
      <Gantt
        label={label}
        lines={lines}
        time={time}
        scale={state.own ? undefined : peak}
        height="max(20rem, calc(100vh - 19.5rem))"
      />
      {lines.length === 0 && <Nothing state={state} />}
      <p className="muted">
        {state.own
          ? "The height of a row is the largest rate of its own transfer."
          : `The height of a row is ${rate(peak)}, the largest rate of all.`}{" "}
        Drag to move, wheel to zoom, click a row for its transfer.
      </p>
    </>
  );
}

function Nothing({ state }: { state: ScheduleState }) {
  const filtered = state.link || state.host || state.search || state.hide.length > 0;
  return (
    <Empty title="Nothing is booked here">
      {filtered
        ? "Nothing that matches lies in this stretch of time."
        : "No transfer lies in this stretch of time. Move it, or zoom out."}
    </Empty>
  );
}
