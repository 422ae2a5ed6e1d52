// SPDX-License-Identifier: Apache-2.0
// What is shown of the schedule: a link, a host or everything, in which order, and which stretch of time.
import { useMemo } from "react";
import type { Link } from "../../api/types";
import { moved, zoomed } from "../../plot/gestures";
import { Button, CheckField, Field, SearchField, SelectField } from "../../ui";
import { linkNames } from "./link-names";
import { byName } from "./rows";
import { GROUPINGS, type ScheduleState } from "./state";
import type { Shown } from "./use-range";

interface ToolsProps {
  state: ScheduleState;
  set: (change: Partial<ScheduleState>) => void;
  links: readonly Link[];
}

export function Tools({ state, set, links }: ToolsProps) {
  return (
    <div className="row schedule-tools">
      <Place state={state} set={set} links={links} />
      <SelectField label="Group by" value={state.group} onChange={(group) => set({ group })} options={GROUPINGS} />
      <SearchField label="Find a transfer" value={state.search} onChange={(search) => set({ search })} />
      <CheckField label="Each row by its own largest rate" checked={state.own} onChange={(own) => set({ own })} />
    </div>
  );
}

function Place({ state, set, links }: ToolsProps) {
  const named = useMemo(() => placesOf(links), [links]);
  const value = state.link ? `link ${state.link}` : state.host ? `host ${state.host}` : "";
  const pick = (chosen: string): void => {
    const [kind, ...rest] = chosen.split(" ");
    const name = rest.join(" ");
    set({ link: kind === "link" ? name : "", host: kind === "host" ? name : "" });
  };
  return (
    <Field label="On">
      {(wired) => (
        <select {...wired} value={value} onChange={(event) => pick(event.target.value)}>
          <option value="">All links and hosts</option>
          {value && !named.known.has(value) && <option value={value}>{state.link || state.host}</option>}
          <optgroup label="Hosts">
            {named.hosts.map((host) => (
              <option key={host} value={`host ${host}`}>
                {host}
              </option>
            ))}
          </optgroup>
          <optgroup label="Links">
            {named.links.map(({ id, name }) => (
              <option key={id} value={`link ${id}`}>
                {name}
              </option>
            ))}
          </optgroup>
        </select>
      )}
    </Field>
  );
}

function placesOf(links: readonly Link[]) {
  const hosts = [...new Set(links.flatMap((link) => link.host ?? []))].sort();
  const named = [...linkNames(links)]
    .map(([id, name]) => ({ id, name }))
    .sort((one, other) => byName.compare(one.name, other.name));
  return {
    hosts,
    links: named,
    known: new Set([...hosts.map((host) => `host ${host}`), ...links.map((link) => `link ${link.id}`)]),
  };
}

const SPANS = [
  ["15 min", 900],
  ["1 h", 3_600],
  ["6 h", 21_600],
  ["12 h", 43_200],
  ["1 d", 86_400],
  ["7 d", 604_800],
] as const;

/** For who has no wheel and no keyboard at hand. */
export function TimeTools({ time }: { time: Shown }) {
  const { range, show, follow, follows } = time;
  const length = range[1] - range[0];
  const middle = (range[0] + range[1]) / 2;
  return (
    <div className="row" role="group" aria-label="Stretch of time">
      <Button
        kind={follows ? "primary" : "plain"}
        aria-pressed={follows}
        title="Go with the time (N)"
        onClick={() => follow(Math.round(length))}
      >
        Now
      </Button>
      {SPANS.map(([title, span]) => (
        <Button
          key={span}
          kind={Math.abs(length - span) < 1 ? "plain" : "quiet"}
          aria-pressed={Math.abs(length - span) < 1}
          onClick={() => (follows ? follow(span) : show([middle - span / 2, middle + span / 2]))}
        >
          {title}
        </Button>
      ))}
      <Button kind="quiet" aria-label="Earlier" onClick={() => show(moved(range, -length / 2, undefined))}>
        ←
      </Button>
      <Button kind="quiet" aria-label="Later" onClick={() => show(moved(range, length / 2, undefined))}>
        →
      </Button>
      <Button kind="quiet" aria-label="Closer" onClick={() => show(zoomed(range, 0.5, middle, undefined))}>
        +
      </Button>
      <Button kind="quiet" aria-label="Further" onClick={() => show(zoomed(range, 2, middle, undefined))}>
        −
      </Button>
    </div>
  );
}
