// SPDX-License-Identifier: Apache-2.0
// One instant of a link: what may be used, what is booked and by whom.
import { useMemo } from "react";
import { to } from "../../addresses";
import { transferName } from "../../format/names";
import { rate } from "../../format/units";
import { type StepFunction, stepAt } from "../../plot/align";
import { useColours } from "../../plot/colours";
import { Button, Facts, Link, Rate, Share, Time } from "../../ui";
import { type Held, heldAt } from "./bookings";
import { type By, OTHERS, othersName } from "./layers";
import type { Known } from "./use-picture";

interface MomentProps {
  known: Known;
  by: By;
  time: number;
  /** "Now", "Under the pointer", "Held" */
  title: string;
  onLetGo: (() => void) | undefined;
}

const MOST_SHOWN = 30;

export function Moment({ known, by, time, title, onLetGo }: MomentProps) {
  const held = useMemo(() => heldAt(known.bookings, time), [known.bookings, time]);
  const capacity = valueAt(known.capacity, time);
  const booked = held.reduce((sum, { bps }) => sum + bps, 0);
  const measured = valueAt(known.measured, time);
  return (
    <section className="moment stack" aria-label="Who holds what at one instant">
      <header className="row apart">
        <h3>
          {title} · <Time at={time} />
        </h3>
        {onLetGo && (
          <Button kind="quiet" onClick={onLetGo}>
            Let go
          </Button>
        )}
      </header>
      <Facts
        items={[
          ["Capacity", <Rate bps={capacity} />],
          [
            "Booked",
            <>
              <Rate bps={booked} />
              {capacity ? (
                <span className="muted">
                  {" "}
                  · <Share of={booked / capacity} />
                </span>
              ) : null}
            </>,
          ],
          ["Free", capacity === null ? null : <Rate bps={capacity - booked} />],
          ["Measured", measured === null ? <span className="muted">no report</span> : <Rate bps={measured} />],
        ]}
      />
      <Holders held={held} known={known} by={by} />
    </section>
  );
}

function Holders({ held, known, by }: { held: readonly Held[]; known: Known; by: By }) {
  const colours = useColours();
  const hidden = held.slice(MOST_SHOWN);
  const colourOf = ({ holder }: Held): string => {
    const key = holder && (by === "transfer" ? holder.id : (holder.project ?? ""));
    return colours.of((key !== undefined && known.colours.get(key)) || known.colours.get(OTHERS) || "muted");
  };
  if (held.length === 0) return <p className="muted">Nothing is booked then.</p>;
  return (
    <ul className="moment-holders">
      {held.slice(0, MOST_SHOWN).map((one) => (
        <li key={one.holder?.id ?? OTHERS}>
          <span className="swatch" style={{ background: colourOf(one) }} />
          {one.holder ? (
            <Link to={to.transfer(one.holder.id)}>{transferName(one.holder)}</Link>
          ) : (
            <span>{othersName(known.bookings.rest)}</span>
          )}
          <Rate bps={one.bps} />
        </li>
      ))}
      {hidden.length > 0 && (
        <li className="muted">
          and {hidden.length} more with {rate(hidden.reduce((sum, { bps }) => sum + bps, 0))} together
        </li>
      )}
    </ul>
  );
}

/** Null where the function is unknown. */
export function valueAt({ x, values }: StepFunction, time: number): number | null {
  const value = values[stepAt(x, time)];
  return value === undefined || Number.isNaN(value) ? null : value;
}
