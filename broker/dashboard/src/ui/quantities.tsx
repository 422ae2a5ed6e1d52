// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them; the exact value, and UTC, when the pointer rests on them.
import { duration, type Instant, iso, local, relative, utc } from "../format/time";
import { exact, rate, share, volume } from "../format/units";
import { useNow } from "../format/use-now";
import "./quantities.css";

type Maybe = number | null | undefined;

function Quantity({ shown, hint }: { shown: string; hint: string | undefined }) {
  return (
    <span className="quantity" title={hint}>
      {shown}
    </span>
  );
}

export function Rate({ bps }: { bps: Maybe }) {
  return <Quantity shown={rate(bps)} hint={typeof bps === "number" ? `${exact(bps)} bit/s` : undefined} />;
}

export function Volume({ bytes }: { bytes: Maybe }) {
  return <Quantity shown={volume(bytes)} hint={typeof bytes === "number" ? `${exact(bytes)} bytes` : undefined} />;
}

export function Duration({ s }: { s: Maybe }) {
  return <Quantity shown={duration(s)} hint={typeof s === "number" ? `${exact(s)} s` : undefined} />;
}

/** A share of one: 0.42 is 42 %. */
export function Share({ of }: { of: Maybe }) {
  return <Quantity shown={share(of)} hint={typeof of === "number" ? `${exact(of * 100)} %` : undefined} />;
}

interface TimeProps {
  at: Instant | null | undefined;
  /** "in 5 min" instead of the clock; the clock is on hover. */
  relative?: boolean;
}

export function Time({ at, relative: asRelative = false }: TimeProps) {
  if (at === null || at === undefined) return <span className="quantity">–</span>;
  return asRelative ? <Relative at={at} /> : <Clock at={at} />;
}

function Clock({ at }: { at: Instant }) {
  return (
    <time className="quantity" dateTime={iso(at)} title={`${utc(at)} · ${relative(at)}`}>
      {local(at, new Date())}
    </time>
  );
}

function Relative({ at }: { at: Instant }) {
  const now = useNow(1_000);
  return (
    <time className="quantity" dateTime={iso(at)} title={`${local(at)} · ${utc(at)}`}>
      {relative(at, now)}
    </time>
  );
}

/** How far something is. Without `value` nobody knows. */
export function Progress({ value, max = 1, label }: { value: Maybe; max?: number; label: string }) {
  const known = typeof value === "number" && max > 0;
  return (
    <span className="progress" title={known ? `${label}: ${share(value / max)}` : label}>
      <progress aria-label={label} {...(known ? { value: Math.min(value, max), max } : {})} />
      {known && <span aria-hidden="true">{share(value / max)}</span>}
    </span>
  );
}

const FULL = 0.95;
const BUSY = 0.75;

/** How much of something is taken, such as the booked share of a link. */
export function Meter({ of, label }: { of: number; label: string }) {
  const level = of >= FULL ? "bad" : of >= BUSY ? "warn" : "good";
  return (
    <span className={`progress meter ${level}`} title={`${label}: ${share(of)}`}>
      <meter aria-label={label} min={0} max={1} value={Math.min(of, 1)} />
      <span aria-hidden="true">{share(of)}</span>
    </span>
  );
}
