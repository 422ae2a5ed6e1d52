// SPDX-License-Identifier: Apache-2.0
// The card with gamma(t): which stretch of time, stacked by what, drawn or as tables. All of that is in the URL.
import { useCallback, useMemo } from "react";
import type { Link } from "../../api/types";
import { linkName } from "../../format/names";
import { seconds } from "../../format/time";
import { useNow } from "../../format/use-now";
import type { Range } from "../../plot/steps";
import { Answer, Card, Choice, TabPanel, Tabs, Time } from "../../ui";
import { maybe, oneOf, useUrlState } from "../../url-state";
import { CalendarTable } from "./calendar-table";
import { BY } from "./layers";
import { Plot } from "./plot";
import { SPANS, type Span, shownRange } from "./range";
import { TransfersTable } from "./transfers-table";
import { usePicture } from "./use-picture";

const TOPS = ["3", "5", "8"] as const;
const TABS = [
  { key: "plot", title: "Plot" },
  { key: "transfers", title: "Transfers" },
  { key: "calendar", title: "Table" },
] as const;
const STATE = {
  span: oneOf(SPANS, "24h"),
  from: maybe(),
  to: maybe(),
  at: maybe(),
  by: oneOf(BY, "transfer"),
  top: oneOf(TOPS, "8"),
  show: oneOf(["plot", "transfers", "calendar"], "plot"),
};
const SPAN_OPTIONS = SPANS.map((span) => ({ value: span, label: span.replace(/(\d+)/, "$1 ") }));
const BY_OPTIONS = [
  { value: "transfer", label: "By transfer" },
  { value: "project", label: "By project" },
] as const;
const TOP_OPTIONS = TOPS.map((top) => ({ value: top, label: `Top ${top}` }));
const FOLLOW_MS = 15_000;

interface ChartProps {
  link: Link;
  onPick: ((picked: Range, shown: Range) => void) | undefined;
}

export function Chart({ link, onPick }: ChartProps) {
  const [state, setState] = useUrlState(STATE);
  const now = seconds(useNow(FOLLOW_MS));
  const [from, end] = shownRange(state, now);
  const range = useMemo((): Range => [from, end], [from, end]);
  const picture = usePicture(link.id, range, state.by, Number(state.top));
  const moved = state.from !== null && state.to !== null;
  const onRange = useCallback(
    ([begin, finish]: Range) => setState({ from: milliseconds(begin), to: milliseconds(finish) }),
    [setState],
  );
  const onReset = useCallback(() => setState({ from: null, to: null }), [setState]);
  const onHold = useCallback((time: number | null) => setState({ at: time === null ? null : milliseconds(time) }), [setState]);
  const pick = useMemo(() => onPick && ((picked: Range) => onPick(picked, [from, end])), [onPick, from, end]);
  const controls = (
    <>
      <Choice label="Stack" options={BY_OPTIONS} value={state.by} onChange={(by) => setState({ by })} />
      <Choice label="How many of them" options={TOP_OPTIONS} value={state.top} onChange={(top) => setState({ top })} />
      <Choice
        label="Range"
        options={SPAN_OPTIONS}
        value={(moved ? "" : state.span) as Span}
        onChange={(span) => setState({ span, from: null, to: null })}
      />
    </>
  );
  return (
    <Card title="Capacity over time" actions={controls}>
      <div className="row apart">
        <Tabs label="Show" tabs={TABS} value={state.show} onChange={(show) => setState({ show })} />
        <span className="muted">
          <Time at={from} /> to <Time at={end} />
        </span>
      </div>
      <Answer of={picture}>
        {(known) => (
          <>
            <TabPanel of="plot" value={state.show}>
              <Plot
                name={linkName(link)}
                known={known}
                windows={link.windows}
                range={range}
                by={state.by}
                held={state.at}
                onHold={onHold}
                onRange={onRange}
                onReset={onReset}
                onPick={pick}
              />
            </TabPanel>
            <TabPanel of="transfers" value={state.show}>
              <TransfersTable known={known} range={range} link={link.id} />
            </TabPanel>
            <TabPanel of="calendar" value={state.show}>
              <CalendarTable known={known} range={range} link={link.id} />
            </TabPanel>
          </>
        )}
      </Answer>
    </Card>
  );
}

/** A range in the URL that can be read. */
const milliseconds = (time: number): number => Math.round(time * 1_000) / 1_000;
