// SPDX-License-Identifier: Apache-2.0
// The answer of a preview: what would be another way, before and after.
import type { ReactNode } from "react";
import { to } from "../../addresses";
import type { Moved, Transfer, TransferPreview } from "../../api/types";
import { transferName } from "../../format/names";
import { duration } from "../../format/time";
import { Facts, Link, Notice, Rate, Time, Volume } from "../../ui";
import { type Effect, effect, freedBy, type Pair } from "./effects";
import { LinkName } from "./link-names";

type Row = readonly [string, ReactNode];

export function ShownEffect({ transfer, preview }: { transfer: Transfer; preview: TransferPreview }) {
  const found = effect(transfer, preview);
  return (
    <div className="stack" role="status" aria-label="Preview">
      <Verdict effect={found} ended={preview.state === "CANCELED"} />
      <Facts items={found.stops ? whatGoesBack(preview) : whatMoves(found)} />
      {preview.moved.length > 0 && <Others moved={preview.moved} />}
    </div>
  );
}

/** Who waits for the end of this one, and would move with it. */
function Others({ moved }: { moved: readonly Moved[] }) {
  const broken = moved.filter((one) => one.broken).length;
  return (
    <>
      <Notice tone={broken > 0 ? "bad" : "warn"}>
        {moved.length === 1
          ? "Another transfer waits for this one and would move with it."
          : `${moved.length} other transfers wait for this one and would move with it.`}
        {broken > 0 && ` ${broken === 1 ? "One promise" : `${broken} promises`} would be broken.`}
      </Notice>
      <ul className="moved">
        {moved.map((one) => (
          <li key={one.id}>
            <Link to={to.transfer(one.id)} title={`Transfer ${one.id}`}>
              {transferName(one)}
            </Link>
            , finishing {changed({ before: one.finish_before, after: one.finish }, (at) => <Time at={at} />) ?? "when it does now"}
          </li>
        ))}
      </ul>
    </>
  );
}

function whatGoesBack({ freed }: TransferPreview): Row[] {
  const all = freedBy(freed);
  return [["Goes back", all ? <FreedCapacity freed={all} /> : "nothing: all of it is over"]];
}

function whatMoves(found: Effect): Row[] {
  const elsewhere = found.left.length > 0 && found.joined.length > 0;
  return [
    ["Begins", changed(found.start, (at) => <Time at={at} />)],
    ["Finishes", changed(found.finish, (at) => <Time at={at} />)],
    ["Promised", changed(found.promise, (at) => <Time at={at} />)],
    ["Highest rate", changed(found.peak, (bps) => <Rate bps={bps} />)],
    ["Leaves", elsewhere ? <Links ids={found.left} /> : null],
    ["Takes instead", elsewhere ? <Links ids={found.joined} /> : null],
  ];
}

function Verdict({ effect: { later, stops, finish }, ended }: { effect: Effect; ended: boolean }) {
  if (ended) return <Notice tone="warn">It ends now, for good. What it was promised is given up.</Notice>;
  if (stops)
    return (
      <Notice tone="warn">
        It stands still until it is resumed, and then takes what is free: what it was promised may be lost.
      </Notice>
    );
  if (later === null)
    return <Notice tone="good">{finish.after ? "It would be booked anew." : "Its booking stays as it is."}</Notice>;
  if (Math.abs(later) < 1) return <Notice tone="good">It would finish when it does now.</Notice>;
  if (later > 0) return <Notice tone="warn">It would finish {duration(later)} later.</Notice>;
  return <Notice tone="good">It would finish {duration(-later)} earlier.</Notice>;
}

function changed<T>({ before, after }: Pair<T>, show: (value: T) => ReactNode): ReactNode | null {
  if (before === after) return null;
  return (
    <>
      <span className="unseen">from </span>
      {show(before)} <span aria-hidden="true">→</span>
      <span className="unseen"> to </span> <strong>{show(after)}</strong>
    </>
  );
}

function FreedCapacity({ freed: { bytes, begin, end } }: { freed: { bytes: number; begin: string; end: string } }) {
  return (
    <>
      <Volume bytes={bytes} /> booked from <Time at={begin} /> to <Time at={end} />
    </>
  );
}

function Links({ ids }: { ids: readonly string[] }) {
  return (
    <>
      {ids.map((id, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <LinkName id={id} />
        </span>
      ))}
    </>
  );
}
