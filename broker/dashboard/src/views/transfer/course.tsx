// SPDX-License-Identifier: Apache-2.0
// What was booked against what was measured, as rate and as bytes over time.
import { useCallback, useMemo } from "react";
import { at } from "../../api/client";
import type { Transfer } from "../../api/types";
import { useQuery } from "../../api/use";
import { seconds } from "../../format/time";
import { useNow } from "../../format/use-now";
import { align, type StepFunction } from "../../plot/align";
import { type Range, type Series, Steps } from "../../plot/steps";
import { Card, Choice, Empty } from "../../ui";
import { maybe, oneOf, useUrlState } from "../../url-state";
import { isLive } from "../transfers/followed";
import { bookedBytes, bookedRate, type Measurement, reportedBytes, reportedRate, reportsOf } from "./curves";
import { Legend } from "./legend";

const STATE = { curve: oneOf(["rate", "bytes"], "rate"), from: maybe(), to: maybe() };
const CURVES = [
  { value: "rate", label: "Rate" },
  { value: "bytes", label: "Bytes" },
] as const;
const REPORTS_MS = 5_000;
const NOW_MS = 10_000;
const NO_REPORTS: readonly Measurement[] = [];

export function Course({ transfer }: { transfer: Transfer }) {
  const [state, setState] = useUrlState(STATE);
  const counted = transfer.mode !== "reserve";
  const reports = useQuery<{ items: Measurement[] }>(
    counted ? at`/v1/transfers/${transfer.id}/measurements` : null,
    transfer.state === "ACTIVE" ? { everyMs: REPORTS_MS } : {},
  );
  const { x, series } = useCurves(transfer, reports.data?.items ?? NO_REPORTS, state.curve);
  const now = useNow(NOW_MS).getTime() / 1000;
  const whole = useWhole(transfer, x, now);
  const range = useMemo<Range>(() => [state.from ?? whole[0], state.to ?? whole[1]], [state.from, state.to, whole]);
  const lines = useMemo(() => marks(transfer, now), [transfer, now]);
  const onRange = useCallback(
    ([from, to]: Range) => setState(from <= whole[0] && to >= whole[1] ? { from: null, to: null } : { from, to }),
    [setState, whole],
  );
  return (
    <Card
      title="Booked and measured"
      actions={<Choice label="Curve" options={CURVES} value={state.curve} onChange={(curve) => setState({ curve })} />}
    >
      {x.length === 0 ? (
        <Empty title="Nothing is booked">There is neither a plan nor a measurement to draw.</Empty>
      ) : (
        <>
          <Legend series={series} />
          <Steps
            label={`${state.curve === "rate" ? "Rate" : "Bytes"} of the transfer over time, booked and measured`}
            x={x}
            series={series}
            range={range}
            bounds={whole}
            onRange={onRange}
            unit={state.curve === "rate" ? "bps" : "bytes"}
            height="18rem"
            lines={lines}
          />
        </>
      )}
    </Card>
  );
}

interface Named {
  line: Omit<Series, "values">;
  steps: StepFunction;
}

function useCurves(
  transfer: Transfer,
  measurements: readonly Measurement[],
  curve: "rate" | "bytes",
): { x: Float64Array; series: Series[] } {
  // Asked again every few seconds, its plan is mostly the same: then so are the curves.
  const plan = JSON.stringify(transfer.plan.segments);
  const { source, volume_bytes } = transfer;
  return useMemo(() => {
    const segments = JSON.parse(plan) as Transfer["plan"]["segments"];
    const reports = reportsOf(measurements, source);
    const curves: Named[] =
      curve === "rate" ? ratesOf(segments, reports) : bytesOf(segments, reports, volume_bytes ?? Number.POSITIVE_INFINITY);
    const { x, values } = align(curves.map(({ steps }) => steps));
    return { x, series: curves.map(({ line }, index) => ({ ...line, values: values[index] ?? new Float64Array() })) };
  }, [plan, measurements, source, volume_bytes, curve]);
}

type Segments = Transfer["plan"]["segments"];

function ratesOf(segments: Segments, reports: readonly Measurement[]): Named[] {
  const booked: Named = {
    line: { key: "booked", label: "Booked", colour: "series-0", fill: true, width: 1.5 },
    steps: bookedRate(segments),
  };
  if (reports.length < 2) return [booked];
  return [
    booked,
    {
      line: { key: "applied", label: "Applied by the sender", colour: "series-4", width: 1.5, dash: [6, 4] },
      steps: reportedRate(reports, "applied_rate_bps"),
    },
    { line: { key: "measured", label: "Measured", colour: "series-1", width: 2 }, steps: reportedRate(reports, "rate_bps") },
  ];
}

function bytesOf(segments: Segments, reports: readonly Measurement[], whole: number): Named[] {
  const booked: Named = {
    line: { key: "booked", label: "Planned", colour: "series-0", fill: true, width: 1.5 },
    steps: bookedBytes(segments, whole),
  };
  if (reports.length === 0) return [booked];
  return [booked, { line: { key: "measured", label: "Arrived", colour: "series-1", width: 2 }, steps: reportedBytes(reports) }];
}

const MARGIN = 0.06; // room for the labels of the marks

/** Everything there is to see, and now while it is live; it grows in steps, so that the plot does not creep. */
function useWhole(transfer: Transfer, x: Float64Array, now: number): Range {
  const first = x[0] ?? now;
  const last = Math.max(x.at(-1) ?? now, isLive(transfer) && (x.at(-1) ?? 0) < now ? Math.ceil(now / 60) * 60 : 0);
  return useMemo<Range>(() => {
    const margin = Math.max((last - first) * MARGIN, 1);
    return [first - margin, last + margin];
  }, [first, last]);
}

function marks(transfer: Transfer, now: number): { at: number; label: string; colour: string }[] {
  return [
    ...(isLive(transfer) ? [{ at: now, label: "now", colour: "text" }] : []),
    ...(transfer.promised_finish ? [{ at: seconds(transfer.promised_finish), label: "promised", colour: "good" }] : []),
    ...(transfer.deadline ? [{ at: seconds(transfer.deadline), label: "deadline", colour: "bad" }] : []),
  ];
}
