// SPDX-License-Identifier: Apache-2.0
import { type ReactNode, useState } from "react";
import { Field } from "../../ui";

interface NumberFieldProps {
  label: string;
  value: number | null;
  onChange: (value: number) => void;
  hint?: ReactNode;
  error?: string | undefined;
  step?: number | "any";
  min?: number;
  max?: number;
}

/** A number without a unit. While what is typed is none, the last one holds. */
export function NumberField({ label, value, onChange, hint, error, step = 1, min = 0, max }: NumberFieldProps) {
  const [draft, setDraft] = useState<string | undefined>(undefined);
  return (
    <Field label={label} hint={hint} error={error}>
      {(wired) => (
        <input
          type="number"
          step={step}
          min={min}
          max={max}
          {...wired}
          value={draft ?? value ?? ""}
          onBlur={() => setDraft(undefined)}
          onChange={(event) => {
            setDraft(event.target.value);
            if (!Number.isNaN(event.target.valueAsNumber)) onChange(event.target.valueAsNumber);
          }}
        />
      )}
    </Field>
  );
}
