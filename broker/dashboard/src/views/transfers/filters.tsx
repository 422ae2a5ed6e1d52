// SPDX-License-Identifier: Apache-2.0
import { useMay } from "../../api/session";
import { local } from "../../format/time";
import { Button, SearchField } from "../../ui";
import { stateName } from "../../ui/tag";
import { NameFilter } from "./name-filter";
import { isFiltered, type ListState, NO_FILTER } from "./question";
import { Toggles } from "./toggles";
import { useNodeNames } from "./use-node-names";

const STATES = ["HELD", "RESERVED", "ACTIVE", "FINISHED", "FAILED", "CANCELED", "EXPIRED"].map((value) => ({
  value,
  label: stateName(value),
}));
const PROMISES = [
  { value: "kept", label: "Kept" },
  { value: "at_risk", label: "At risk" },
  { value: "broken", label: "Broken" },
];
const MINE = [{ value: "1", label: "Mine" }];

interface FiltersProps {
  state: ListState;
  /** In use among the rows that are there: suggestions, not a limit. */
  projects: readonly string[];
  onChange: (change: Partial<ListState>) => void;
}

export function Filters({ state, projects, onChange }: FiltersProps) {
  const may = useMay();
  const nodes = useNodeNames();
  return (
    <div className="transfers-filters" role="search" aria-label="Transfers" onFocus={nodes.want}>
      <SearchField label="Search name, project, place or id" value={state.search} onChange={(search) => onChange({ search })} />
      <Toggles label="State" options={STATES} value={state.state} onChange={(chosen) => onChange({ state: chosen })} />
      <Toggles label="Promise" options={PROMISES} value={state.promise} onChange={(promise) => onChange({ promise })} />
      <NameFilter label="From" options={nodes.names} value={state.source} onChange={(source) => onChange({ source })} />
      <NameFilter
        label="To"
        options={nodes.names}
        value={state.destination}
        onChange={(destination) => onChange({ destination })}
      />
      <NameFilter label="Project" options={projects} value={state.project} onChange={(project) => onChange({ project })} />
      {may("submit") && (
        <Toggles
          label="Owner"
          options={MINE}
          value={state.mine ? ["1"] : []}
          onChange={(chosen) => onChange({ mine: chosen.length > 0 })}
        />
      )}
      {state.node && <Chip onRemove={() => onChange({ node: "" })}>{`From or to ${state.node}`}</Chip>}
      {state.ended_after && <Chip onRemove={() => onChange({ ended_after: "" })}>{`Ended since ${when(state.ended_after)}`}</Chip>}
      {isFiltered(state) && (
        <Button kind="quiet" icon="close" onClick={() => onChange(NO_FILTER)}>
          Clear filters
        </Button>
      )}
    </div>
  );
}

/** A filter that was set elsewhere. */
function Chip({ onRemove, children }: { onRemove: () => void; children: string }) {
  return (
    <Button icon="close" aria-label={`Remove the filter: ${children}`} onClick={onRemove}>
      {children}
    </Button>
  );
}

/** It stands in the URL, where anybody may have written anything. */
const when = (given: string): string => (Number.isNaN(Date.parse(given)) ? given : local(given, new Date()));
