// SPDX-License-Identifier: Apache-2.0
// What is looked for: words, kind, action, a span of time; and who or what, chosen from a row or by a link that leads here.
import type { BrokerEvent } from "../../api/types";
import { actionName } from "../../format/names";
import { Button, Icon, SearchField, SelectField, TimeField } from "../../ui";
import { ACTIONS, ALL_ACTIONS } from "./actions";
import { actorName, kindName, subjectName } from "./names";
import { type AuditState, maybeText } from "./state";

interface FiltersProps {
  state: AuditState;
  onChange: (change: Partial<AuditState>) => void;
  /** For the names of the actor and the subject that are looked for. */
  known: readonly BrokerEvent[];
}

export function Filters({ state, onChange, known }: FiltersProps) {
  const actions = (state.kind ? (ACTIONS[state.kind] ?? []).map((verb) => `${state.kind}.${verb}`) : ALL_ACTIONS).concat();
  if (state.action && !actions.includes(state.action)) actions.push(state.action);
  const anything = { value: "", label: "Anything" };
  return (
    <>
      <div className="audit-filters" role="search" aria-label="Audit log">
        <SearchField label="Name, id, reason, value …" value={state.text} onChange={(text) => onChange({ text })} />
        <SelectField
          label="About"
          value={state.kind}
          options={[anything, ...Object.keys(ACTIONS).map((kind) => ({ value: kind, label: kindName(kind) }))]}
          onChange={(kind) => onChange({ kind, action: "" })}
        />
        <SelectField
          label="What happened"
          value={state.action}
          options={[anything, ...actions.map((action) => ({ value: action, label: actionName(action) }))]}
          onChange={(action) => onChange({ action })}
        />
        <TimeField label="From" value={maybeText(state.from)} onChange={(from) => onChange({ from: from ?? "" })} />
        <TimeField label="To" value={maybeText(state.to)} onChange={(to) => onChange({ to: to ?? "" })} />
      </div>
      <Chosen state={state} onChange={onChange} known={known} />
    </>
  );
}

function Chosen({ state, onChange, known }: FiltersProps) {
  const by = known.find((event) => event.actor === state.actor) ?? { actor: state.actor, actor_name: null };
  const about = known.find((event) => event.subject === state.subject);
  if (!state.actor && !state.subject) return null;
  return (
    <div className="row">
      {state.actor && <Drop label={`By ${actorName(by)}`} onDrop={() => onChange({ actor: "" })} />}
      {state.subject && (
        <Drop label={`About ${about ? subjectName(about) : state.subject}`} onDrop={() => onChange({ subject: "" })} />
      )}
    </div>
  );
}

function Drop({ label, onDrop }: { label: string; onDrop: () => void }) {
  return (
    <Button aria-label={`${label}: take this filter away`} onClick={onDrop}>
      {label} <Icon name="close" />
    </Button>
  );
}
