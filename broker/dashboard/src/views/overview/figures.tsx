// SPDX-License-Identifier: Apache-2.0
// The numbers that are read from across the room. Each leads to the list of what it counts.

import { to } from "../../addresses";
import type { Schemas } from "../../api/types";
import { exact, share } from "../../format/units";
import { Figure, Link, type Tone } from "../../ui";
import { listOf } from "./lists";

type Overview = Schemas["Overview"];

export function Figures({ overview, since }: { overview: Overview; since: string }) {
  const { live, day } = overview.promises;
  return (
    <div className="figures overview-figures">
      <Figure
        label="Promises kept"
        tone="good"
        value={live.kept}
        to={listOf.promise("kept")}
        note={<Day number={day.kept} to={listOf.endedPromise("kept", since)} />}
      />
      <Figure
        label="At risk"
        tone={live.at_risk > 0 ? "warn" : "plain"}
        value={live.at_risk}
        to={listOf.promise("at_risk")}
        note="of those under way"
      />
      <Figure
        label="Broken"
        tone={live.broken > 0 ? "bad" : "plain"}
        value={live.broken}
        to={listOf.promise("broken")}
        note={<Day number={day.broken} to={listOf.endedPromise("broken", since)} />}
      />
      <Admitted of={overview.decisions} />
      <Agents of={overview.agents} />
    </div>
  );
}

function Day({ number, to: address }: { number: number; to: string }) {
  return (
    <>
      <Link to={address}>{number}</Link> that ended in 24 h
    </>
  );
}

function Admitted({ of }: { of: Overview["decisions"] }) {
  const [hour, day] = [of.admitted_hour + of.refused_hour, of.admitted_day + of.refused_day];
  const note = `24 h: ${share(day > 0 ? of.admitted_day / day : null)} of ${exact(day)}`;
  return (
    <Figure label="Admitted in 1 h" value={share(hour > 0 ? of.admitted_hour / hour : null)} note={note} to={to.transfers()} />
  );
}

function Agents({ of: { up, late, down } }: { of: Overview["agents"] }) {
  const all = up + late + down;
  const tone: Tone = down > 0 ? "bad" : late > 0 ? "warn" : all > 0 ? "good" : "plain";
  const note = all === 0 ? "no host is enrolled" : `of ${all}; ${late} late, ${down} down`;
  return <Figure label="Agents up" tone={tone} value={up} note={note} to={to.hosts()} />;
}
