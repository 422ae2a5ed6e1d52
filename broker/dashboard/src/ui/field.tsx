// SPDX-License-Identifier: Apache-2.0
// Inputs with a label, a hint and an error that belong together for every reader.
import { type InputHTMLAttributes, type ReactNode, useEffect, useId, useRef, useState } from "react";
import "./field.css";
import { Icon } from "./icons";

export interface FieldProps {
  label: ReactNode;
  hint?: ReactNode;
  /** What is wrong with it, such as problem.of("deadline"). */
  error?: ReactNode;
}

interface Wired {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

export function Field({ label, hint, error, children }: FieldProps & { children: (props: Wired) => ReactNode }) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": described || undefined, "aria-invalid": error ? true : undefined })}
      {hint && (
        <div className="field-hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      {error && (
        <div className="field-error" id={`${id}-error`}>
          <Icon name="bad" /> {error}
        </div>
      )}
    </div>
  );
}

type InputProps = Omit<InputHTMLAttributes<HTMLInputElement>, "value" | "onChange">;

interface TextFieldProps extends FieldProps, InputProps {
  value: string;
  onChange: (value: string) => void;
}

export function TextField({ label, hint, error, value, onChange, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(wired) => (
        <input
          type="text"
          autoComplete="off"
          {...rest}
          {...wired}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

export interface Option<T extends string> {
  value: T;
  label: string;
}

interface SelectFieldProps<T extends string> extends FieldProps {
  value: T;
  onChange: (value: T) => void;
  options: readonly Option<T>[];
  disabled?: boolean;
}

export function SelectField<T extends string>({ label, hint, error, value, onChange, options, disabled }: SelectFieldProps<T>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(wired) => (
        <select {...wired} disabled={disabled} value={value} onChange={(event) => onChange(event.target.value as T)}>
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface CheckFieldProps {
  label: ReactNode;
  hint?: ReactNode;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
}

export function CheckField({ label, hint, checked, onChange, disabled }: CheckFieldProps) {
  const id = useId();
  return (
    <div className="field check">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.target.checked)}
      />
      <label htmlFor={id}>{label}</label>
      {hint && (
        <div className="field-hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
    </div>
  );
}

const TYPING_MS = 100;

/** Tells what is searched for when the typing pauses. The label is for readers of the screen; others see the lens. */
export function SearchField({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  const [draft, setDraft] = useState(value);
  const told = useRef(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    if (value !== told.current) setDraft(value); // not by typing: the back button, a button that clears all filters
    told.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (next: string): void => {
    setDraft(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      told.current = next.trim();
      onChange(next.trim());
    }, TYPING_MS);
  };
  return (
    <div className="search">
      <Icon name="search" />
      <input type="search" aria-label={label} placeholder={label} value={draft} onChange={(event) => type(event.target.value)} />
    </div>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  options: readonly Option<T>[];
  value: T;
  onChange: (value: T) => void;
}

/** Few options, all seen at once: radio buttons in a row. */
export function Choice<T extends string>({ label, options, value, onChange }: ChoiceProps<T>) {
  const name = useId();
  return (
    <fieldset className="choice">
      <legend className="unseen">{label}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input type="radio" name={name} checked={option.value === value} onChange={() => onChange(option.value)} />
          <span>{option.label}</span>
        </label>
      ))}
    </fieldset>
  );
}
