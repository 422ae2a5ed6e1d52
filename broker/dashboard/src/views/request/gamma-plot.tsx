// SPDX-License-Identifier: Apache-2.0
// gamma(t) with the offers on it. The deadline is a line that can be drawn along: the form follows, and with it the offers.
import { useCallback, useMemo, useState } from "react";
import { useQueries } from "../../api/many";
import type { Calendar } from "../../api/types";
import { iso, seconds } from "../../format/time";
import { useNow } from "../../format/use-now";
import { type Hover, type MovableLine, type Range, Steps } from "../../plot/steps";
import { Button, Card, Notice, SelectField } from "../../ui";
import type { Change, Form } from "./form";
import { bandsOf, calendarPath, choices, drawn, instantsOf } from "./gamma";
import type { Offer } from "./offers";
import { Readout } from "./readout";
import { fallen, spanOf } from "./span";
import { freeAlong } from "./trc";
import { type Network, pathName } from "./use-network";

interface GammaPlotProps {
  form: Form;
  set: (change: Change) => void;
  offers: readonly Offer[];
  links: Network["links"];
  /** The links whose free capacity is shown; empty: the most telling. */
  along: readonly string[];
  onAlong: (along: readonly string[]) => void;
  /** While the line is in the hand: the offers follow, the URL waits. */
  onDraft: (change: Change | undefined) => void;
}

export function GammaPlot({ form, set, offers, links, along, onAlong, onDraft }: GammaPlotProps) {
  const paths = useMemo(() => choices(offers, form.planner), [offers, form.planner]);
  const shown = paths.find((path) => path.join() === along.join()) ?? paths[0] ?? [];
  const [held, setHeld] = useState(false);
  const { span, seen, setSeen } = useSpan(form, offers, held);
  const calendars = useQueries<Calendar>(shown.map((link) => calendarPath(link, span)));
  const free = useMemo(() => calendars.data && freeAlong(calendars.data), [calendars.data]);
  const plot = useMemo(() => drawn(free, offers, form.planner), [free, offers, form.planner]);
  const bands = useMemo(() => bandsOf(offers, form.planner), [offers, form.planner]);
  const [hover, setHover] = useState<Hover | null>(null);

  const length = seen[1] - seen[0];
  const move = useCallback(
    (field: "deadline" | "not_before", time: number, done: boolean) => {
      const change = { [field]: iso(fallen(time, length)) };
      setHeld(!done);
      onDraft(done ? undefined : change);
      if (done) set(change);
    },
    [length, set, onDraft],
  );
  const lines = useMemo(() => linesOf(form, move), [form.deadline, form.not_before, move]);
  const addDeadline = (): void =>
    set({ deadline: iso(fallen(Math.max(...instantsOf(form, offers, Date.now() / 1000)) + (span[1] - span[0]) / 20, length)) });
  const name = pathName(shown, links);
  return (
    <Card
      title="Free capacity and offers"
      actions={
        <>
          {shown.length > 0 &&
            form.path.join() !== shown.join() &&
            offers.some((offer) => offer.paths.some((path) => path.join() === shown.join())) && (
              <Button title="Ask every planner for this path and no other" onClick={() => set({ path: shown })}>
                Only this path
              </Button>
            )}
          {form.deadline === null && <Button onClick={addDeadline}>Add a deadline</Button>}
        </>
      }
    >
      {paths.length > 1 && (
        <SelectField
          label="Free capacity along"
          value={shown.join("\n")}
          onChange={(chosen) => onAlong(chosen.split("\n"))}
          options={paths.map((path) => ({
            value: path.join("\n"),
            label: path.length === 1 ? `the link ${pathName(path, links)}` : pathName(path, links),
          }))}
        />
      )}
      {calendars.problem && <Notice tone="warn">What is free cannot be shown: {calendars.problem.detail}</Notice>}
      <Steps
        label={`Free capacity along ${name || "the path"} with the offered rates over time${form.deadline ? ", and the deadline as a line that moves" : ""}`}
        x={plot.x}
        series={plot.series}
        range={seen}
        bounds={span}
        onRange={setSeen}
        onHover={setHover}
        lines={lines}
        bands={bands}
        height="19rem"
      />
      <Readout plot={plot} hover={hover} path={name} />
    </Card>
  );
}

function linesOf(form: Form, move: (field: "deadline" | "not_before", time: number, done: boolean) => void): MovableLine[] {
  const line = (field: "deadline" | "not_before", label: string, colour: string): MovableLine[] => {
    const at = form[field];
    return at === null ? [] : [{ at: seconds(at), label, colour, onMove: (time, done) => move(field, time, done) }];
  };
  return [...line("not_before", "Not before", "accent"), ...line("deadline", "Deadline", "bad")];
}

/** What is seen of time: everything that matters, or what the reader has zoomed to. It holds still while a line is in the hand. */
function useSpan(
  form: Form,
  offers: readonly Offer[],
  held: boolean,
): { span: Range; seen: Range; setSeen: (range: Range) => void } {
  const now = useNow(10_000).getTime() / 1000;
  const [zoom, setZoom] = useState<Range | undefined>(undefined);
  const [before, setBefore] = useState<Range | undefined>(undefined);
  const span = before && held ? before : spanOf(before, instantsOf(form, offers, now));
  if (span !== before) {
    setBefore(span);
    setZoom(undefined);
  }
  return { span, seen: zoom ?? span, setSeen: setZoom };
}
