// SPDX-License-Identifier: Apache-2.0
// Inputs for rates, volumes, durations and instants: people write "10G" and "2h", the API gets integers and RFC 3339.
import { type ReactNode, useState } from "react";
import { duration, fromInput, parseDuration, relative, toInput, utc } from "../format/time";
import { exact, parseRate, parseVolume, rate, volume } from "../format/units";
import { Field, type FieldProps } from "./field";

interface QuantityProps extends FieldProps {
  value: number | null;
  onChange: (value: number | null) => void;
  required?: boolean;
  disabled?: boolean;
  placeholder?: string;
}

interface Kind {
  parse: (given: string) => number | null;
  format: (value: number) => string;
  example: string;
}

const RATE: Kind = { parse: parseRate, format: rate, example: "10G, 2.5 Gbit/s, 800M" };
const VOLUME: Kind = { parse: parseVolume, format: volume, example: "1.5 TB, 20 GiB, 800M" };
const DURATION: Kind = { parse: parseDuration, format: duration, example: "90 s, 2h 30min, 1d" };

export const RateField = (props: QuantityProps) => <QuantityField {...props} kind={RATE} />;
export const VolumeField = (props: QuantityProps) => <QuantityField {...props} kind={VOLUME} />;
/** In seconds. */
export const DurationField = (props: QuantityProps) => <QuantityField {...props} kind={DURATION} />;

function QuantityField({ kind, label, hint, error, value, onChange, ...rest }: QuantityProps & { kind: Kind }) {
  // What is being typed stays as it is, "1." too, as long as it means the value. Another value from outside replaces it.
  const [draft, setDraft] = useState<{ text: string; value: number | null }>({ text: written(kind, value), value });
  const text = draft.value === value ? draft.text : written(kind, value);
  const unreadable = text.trim() !== "" && kind.parse(text) === null;
  const type = (next: string): void => {
    const read = kind.parse(next);
    setDraft({ text: next, value: read });
    if (read !== value) onChange(read);
  };
  const meaning: ReactNode = value !== null && !unreadable && text !== kind.format(value) ? `= ${kind.format(value)}` : hint;
  return (
    <Field label={label} hint={meaning} error={unreadable ? `Cannot be read; write for example ${kind.example}` : error}>
      {(wired) => (
        <input
          type="text"
          inputMode="text"
          autoComplete="off"
          placeholder={kind.example}
          {...rest}
          {...wired}
          value={text}
          onChange={(event) => type(event.target.value)}
        />
      )}
    </Field>
  );
}

/** The short form when it says exactly this value, else the number itself. */
function written(kind: Kind, value: number | null): string {
  if (value === null) return "";
  const short = kind.format(value);
  return kind.parse(short) === value ? short : exact(value) + (kind === DURATION ? " s" : "");
}

interface TimeFieldProps extends FieldProps {
  /** RFC 3339 */
  value: string | null;
  onChange: (value: string | null) => void;
  required?: boolean;
  disabled?: boolean;
}

export function TimeField({ label, hint, error, value, onChange, ...rest }: TimeFieldProps) {
  const meaning = value === null ? hint : `${utc(value)} · ${relative(value)}`;
  return (
    <Field label={label} hint={meaning} error={error}>
      {(wired) => (
        <input
          type="datetime-local"
          step="1"
          {...rest}
          {...wired}
          value={value === null ? "" : toInput(value)}
          onChange={(event) => onChange(fromInput(event.target.value))}
        />
      )}
    </Field>
  );
}
