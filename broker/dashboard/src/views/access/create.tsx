// SPDX-License-Identifier: Apache-2.0
// The form for a new token: its name, its scopes and its expiry.
import { type FormEvent, useState } from "react";
import { post } from "../../api/client";
import type { Scope } from "../../api/session";
import type { NewToken } from "../../api/types";
import { invalidate, useAction } from "../../api/use";
import { iso } from "../../format/time";
import { Button, CheckField, Dialog, Refusal, SelectField, TextField, TimeField } from "../../ui";
import { impliedBy, SCOPES, scopeOf } from "./tokens";

const LIFETIMES = [
  { value: "1", label: "In a day" },
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
  { value: "at", label: "At a time …" },
  { value: "never", label: "Never" },
] as const;
type Lifetime = (typeof LIFETIMES)[number]["value"];

interface CreateProps {
  onClose: () => void;
  onCreated: (token: NewToken) => void;
}

export function Create({ onClose, onCreated }: CreateProps) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["read"]);
  const [lifetime, setLifetime] = useState<Lifetime>("90");
  const [at, setAt] = useState<string | null>(null);
  const [tried, setTried] = useState(false);
  const create = useAction((body: object) => post<NewToken>("/v1/tokens", body));
  const missing = { name: name.trim() === "", scopes: scopes.length === 0, at: lifetime === "at" && at === null };
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setTried(true);
    if (missing.name || missing.scopes || missing.at) return;
    const made = await create.run({ name: name.trim(), scopes, expires: expiry(lifetime, at) });
    if (made === undefined) return;
    invalidate("/v1/tokens");
    onCreated(made);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title="New token"
      actions={
        <>
          <Button onClick={onClose}>Go back</Button>
          <Button type="submit" form="new-token" kind="primary" busy={create.busy}>
            Create token
          </Button>
        </>
      }
    >
      <form id="new-token" className="stack" onSubmit={(event) => void submit(event)}>
        <TextField
          label="Name"
          hint="Who or what will use it; the audit log shows this name."
          data-first
          maxLength={500}
          value={name}
          onChange={setName}
          error={tried && missing.name ? "Give it a name" : create.problem?.of("name")}
        />
        <ScopeFields scopes={scopes} onChange={setScopes} error={tried && missing.scopes ? "Choose at least one" : undefined} />
        <div className="form">
          <SelectField
            label="Expires"
            value={lifetime}
            onChange={setLifetime}
            options={LIFETIMES}
            hint={lifetime === "never" ? "Only for what cannot be given a new one." : undefined}
          />
          {lifetime === "at" && (
            <TimeField
              label="Expires at"
              value={at}
              onChange={setAt}
              error={tried && missing.at ? "Say when" : create.problem?.of("expires")}
            />
          )}
        </div>
        <Refusal problem={create.problem} />
      </form>
    </Dialog>
  );
}

interface ScopeFieldsProps {
  scopes: readonly Scope[];
  onChange: (scopes: readonly Scope[]) => void;
  error: string | undefined;
}

function ScopeFields({ scopes, onChange, error }: ScopeFieldsProps) {
  return (
    <fieldset className="scope-fields stack">
      <legend>It may</legend>
      {SCOPES.map(({ scope, word, means }) => {
        const held = scopes.includes(scope);
        const by = impliedBy(scope, scopes);
        return (
          <CheckField
            key={scope}
            label={by ? `${word} (in ${scopeOf(by).word})` : word}
            hint={means}
            checked={held || by !== undefined}
            disabled={by !== undefined}
            onChange={(on) =>
              onChange(
                on
                  ? [...scopes.filter((other) => impliedBy(other, [scope]) === undefined), scope]
                  : scopes.filter((other) => other !== scope),
              )
            }
          />
        );
      })}
      {error && (
        <div className="field-error" role="alert">
          {error}
        </div>
      )}
    </fieldset>
  );
}

function expiry(lifetime: Lifetime, at: string | null): string | null {
  if (lifetime === "never") return null;
  return lifetime === "at" ? at : iso(Date.now() / 1000 + Number(lifetime) * 86_400);
}
