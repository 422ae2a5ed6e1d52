// SPDX-License-Identifier: Apache-2.0
import { SelectField } from "../../ui";
import type { OnBroken } from "./change-dialog";

const OPTIONS = [
  { value: "refuse", label: "leave them alone: refuse the change" },
  { value: "replan", label: "plan them anew, the most important first" },
] as const;

export function PolicyField({ value, onChange }: { value: OnBroken; onChange: (value: OnBroken) => void }) {
  return (
    <SelectField
      label="Transfers that lose their place"
      hint="A promise breaks when the new plan ends later than was promised, or when there is none."
      value={value}
      onChange={onChange}
      options={OPTIONS}
    />
  );
}
