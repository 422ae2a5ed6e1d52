// SPDX-License-Identifier: Apache-2.0
// Inputs that only this form has: an end of a transfer with suggestions, and small whole numbers.
import { useId } from "react";
import { Field } from "../../ui";
import type { Place } from "./use-network";

interface PlaceFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  places: readonly Place[];
  error?: string | undefined;
}

export function PlaceField({ label, value, onChange, places, error }: PlaceFieldProps) {
  const id = useId();
  const found = places.find((place) => place.name === value);
  const unknown = value !== "" && !found && places.length > 0;
  return (
    <Field label={label} error={error} hint={found?.what ?? (unknown ? "no node or host of this name" : "a node or a host")}>
      {(wired) => (
        <>
          <input
            type="text"
            autoComplete="off"
            spellCheck={false}
            required
            list={id}
            {...wired}
            value={value}
            onChange={(event) => onChange(event.target.value)}
          />
          <datalist id={id}>
            {places.map(({ name, what }) => (
              <option key={name} value={name}>
                {what}
              </option>
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

interface WholeFieldProps {
  label: string;
  value: number | null;
  onChange: (value: number | null) => void;
  hint?: string | undefined;
  error?: string | undefined;
  min?: number;
  max?: number;
}

export function WholeField({ label, value, onChange, hint, error, min, max }: WholeFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(wired) => (
        <input
          type="number"
          step={1}
          min={min}
          max={max}
          {...wired}
          value={value ?? ""}
          onChange={(event) =>
            onChange(
              event.target.value === "" || Number.isNaN(event.target.valueAsNumber) ? null : Math.round(event.target.valueAsNumber),
            )
          }
        />
      )}
    </Field>
  );
}
