// SPDX-License-Identifier: Apache-2.0
// A field for several names: one that is typed or picked is added to the list.
import { useEffect, useId, useState } from "react";
import { Button, Field, Icon } from "../../ui";

export interface Named {
  id: string;
  name: string;
}

interface NamesFieldProps {
  label: string;
  all: readonly Named[];
  chosen: readonly string[];
  onChange: (chosen: readonly string[]) => void;
  error?: string | undefined;
}

export function NamesField({ label, all, chosen, onChange, error }: NamesFieldProps) {
  const [draft, setDraft] = useState("");
  const listId = useId();
  const take = (written: string): void => {
    // Two may have one name: then the id is written.
    const found = all.find((one) => one.id === written) ?? all.find((one) => one.name === written);
    if (found && !chosen.includes(found.id)) onChange([...chosen, found.id]);
    setDraft(found ? "" : written);
  };
  // The names may come after what was written.
  useEffect(() => {
    if (draft !== "") take(draft);
  }, [all]);
  return (
    <div className="stack">
      <Field label={label} hint="pick from the list; each joins the choice" error={error}>
        {(wired) => (
          <>
            <input
              type="text"
              autoComplete="off"
              spellCheck={false}
              list={listId}
              {...wired}
              value={draft}
              onChange={(event) => take(event.target.value)}
            />
            <datalist id={listId}>
              {all
                .filter(({ id }) => !chosen.includes(id))
                .map(({ id, name }) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
            </datalist>
          </>
        )}
      </Field>
      <ul className="jobs-chosen" aria-label={`Chosen: ${label}`}>
        {chosen.map((id) => {
          const name = all.find((one) => one.id === id)?.name ?? id;
          return (
            <li key={id} title={id}>
              {name}
              <Button kind="quiet" aria-label={`Without ${name}`} onClick={() => onChange(chosen.filter((one) => one !== id))}>
                <Icon name="close" />
              </Button>
            </li>
          );
        })}
      </ul>
    </div>
  );
}
