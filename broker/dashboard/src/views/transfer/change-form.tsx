// SPDX-License-Identifier: Apache-2.0
// What one may type to change a transfer, one thing at a time. Fields that are not touched are not sent.
import type { Problem } from "../../api/problem";
import type { Transfer } from "../../api/types";
import { iso, local, seconds } from "../../format/time";
import { rate, volume } from "../../format/units";
import { Button, CheckField, Facts, RateField, TextField, TimeField } from "../../ui";
import type { Change } from "./offers";

export interface FormProps {
  transfer: Transfer;
  draft: Change;
  onChange: (change: Change) => void;
  problem: Problem | undefined;
}

export function DeadlineForm({ transfer, draft, onChange, problem }: FormProps) {
  const deadline = draft.deadline === undefined ? transfer.deadline : draft.deadline;
  const from = deadline ?? transfer.plan.finish ?? transfer.promised_finish;
  const later = (by: number) => onChange({ deadline: iso((from ? seconds(from) : Date.now() / 1000) + by) });
  return (
    <>
      <TimeField
        label="Deadline"
        value={deadline}
        onChange={(next) => onChange({ deadline: next })}
        error={problem?.of("deadline")}
        hint="Empty: as early as it can"
      />
      <div className="row" role="group" aria-label="Extend the deadline">
        <Button onClick={() => later(3_600)}>1 h later</Button>
        <Button onClick={() => later(6 * 3_600)}>6 h later</Button>
        <Button onClick={() => later(86_400)}>1 day later</Button>
        <Button disabled={deadline === null} onClick={() => onChange({ deadline: null })}>
          No deadline
        </Button>
      </div>
    </>
  );
}

export function PriorityForm({ transfer, draft, onChange, problem }: FormProps) {
  const priority = draft.priority ?? transfer.priority;
  const type = (text: string): void => {
    if (/^-?\d+$/.test(text.trim())) onChange({ priority: Number(text) });
  };
  return (
    <>
      <TextField
        label="Priority"
        type="number"
        step={1}
        required
        value={String(priority)}
        onChange={type}
        error={problem?.of("priority")}
        hint="Higher is more important"
      />
      <CheckField
        label="Best effort"
        hint="Gives way to requests of higher priority that preempt"
        checked={draft.best_effort ?? transfer.best_effort}
        onChange={(best_effort) => onChange({ best_effort })}
      />
    </>
  );
}

export function RatesForm({ transfer, draft, onChange, problem }: FormProps) {
  const value = (name: "rate_max_bps" | "rate_min_bps"): number | null => (name in draft ? (draft[name] ?? null) : transfer[name]);
  return (
    <>
      <RateField
        label="Highest rate"
        value={value("rate_max_bps")}
        onChange={(rate_max_bps) => onChange({ rate_max_bps })}
        error={problem?.of("rate_max_bps")}
        hint="Empty: as fast as its path"
      />
      <RateField
        label="Lowest rate"
        value={value("rate_min_bps")}
        onChange={(rate_min_bps) => onChange({ rate_min_bps })}
        error={problem?.of("rate_min_bps")}
        hint="Empty: it may rest in between"
      />
    </>
  );
}

/** What an offer changes besides the fields of the form. */
export function Besides({ draft, fields }: { draft: Change; fields: readonly (keyof Change)[] }) {
  const items = (Object.keys(draft) as (keyof Change)[])
    .filter((name) => !fields.includes(name))
    .map((name) => [TITLES[name] ?? name, inWords(name, draft[name])] as const);
  return items.length > 0 ? <Facts items={items} /> : null;
}

const TITLES: Partial<Record<keyof Change, string>> = {
  deadline: "Also: deadline",
  volume_bytes: "Also: volume",
  rate_max_bps: "Also: highest rate",
  rate_min_bps: "Also: lowest rate",
  duration_s: "Also: seconds",
};

function inWords(name: keyof Change, value: unknown): string {
  if (value === null) return "none";
  if (name === "deadline") return local(String(value));
  if (typeof value !== "number") return String(value);
  return name === "volume_bytes" ? volume(value) : name.endsWith("_bps") ? rate(value) : String(value);
}
