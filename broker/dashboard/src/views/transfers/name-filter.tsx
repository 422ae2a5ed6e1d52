// SPDX-License-Identifier: Apache-2.0
// A name that must match exactly, with suggestions. It filters once it is one of them, or on Enter: half a name matches nothing.
import { useEffect, useId, useState } from "react";

interface NameFilterProps {
  label: string;
  options: readonly string[];
  value: string;
  onChange: (value: string) => void;
}

export function NameFilter({ label, options, value, onChange }: NameFilterProps) {
  const id = useId();
  const [draft, setDraft] = useState(value);
  useEffect(() => setDraft(value), [value]); // the back button changes it too
  const type = (next: string): void => {
    setDraft(next);
    if (next === "" || options.includes(next)) onChange(next);
  };
  const commit = (): void => onChange(draft.trim());
  return (
    <span className="name-filter">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        list={`${id}-names`}
        autoComplete="off"
        placeholder="any"
        value={draft}
        onChange={(event) => type(event.target.value)}
        onBlur={commit}
        onKeyDown={(event) => event.key === "Enter" && commit()}
      />
      <datalist id={`${id}-names`}>
        {options.map((option) => (
          <option key={option} value={option} />
        ))}
      </datalist>
    </span>
  );
}
