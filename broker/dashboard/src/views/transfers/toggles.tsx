// SPDX-License-Identifier: Apache-2.0
// A choice of several options: check boxes in a row that look like <Choice>. None chosen means all.
import type { Option } from "../../ui";

interface TogglesProps {
  label: string;
  options: readonly Option<string>[];
  value: readonly string[];
  onChange: (value: readonly string[]) => void;
}

export function Toggles({ label, options, value, onChange }: TogglesProps) {
  const toggle = (one: string): void =>
    onChange(options.map((option) => option.value).filter((other) => value.includes(other) !== (other === one)));
  return (
    <fieldset className="choice">
      <legend className="unseen">{label}</legend>
      {options.map((option) => (
        <label key={option.value}>
          <input type="checkbox" checked={value.includes(option.value)} onChange={() => toggle(option.value)} />
          <span>{option.label}</span>
        </label>
      ))}
    </fieldset>
  );
}
