// SPDX-License-Identifier: Apache-2.0
// Enrols a host: the operator names it and its place, and gets one command line for its administrator, with a one-time token.
import { useMemo, useState } from "react";
import { to } from "../../addresses";
import { post } from "../../api/client";
import type { Host, Link as NetworkLink } from "../../api/types";
import { useAction, useQuery } from "../../api/use";
import {
  Button,
  CheckField,
  Copy,
  Dialog,
  DurationField,
  Field,
  Link,
  Notice,
  RateField,
  Refusal,
  TextField,
  Time,
} from "../../ui";
import "./hosts.css";
import { enrolCommand, installCommand, isLoopback } from "./install";

/** Answer of POST /v1/hosts/enrolment-tokens. */
interface Made {
  token: string;
  host: string;
  node: string;
  nic_bps: number;
  expires: string;
}

interface EnrolProps {
  open: boolean;
  onClose: () => void;
  /** One that is known already and shall join anew. */
  again?: Host;
}

/** What is made is forgotten when it closes: the token is shown once. */
export function Enrol(props: EnrolProps) {
  return props.open ? <Opened {...props} /> : null;
}

function Opened({ onClose, again }: EnrolProps) {
  const [form, setForm] = useState({
    host: again?.name ?? "",
    node: again?.node ?? "",
    nic: again?.nic_bps ?? null,
    ttl: 3_600 as number | null,
    advertise: "",
    tls: true,
  });
  const [made, setMade] = useState<Made | undefined>();
  const ask = useAction(() =>
    post<Made>("/v1/hosts/enrolment-tokens", {
      host: form.host.trim(),
      node: form.node.trim(),
      nic_bps: form.nic,
      ttl_s: form.ttl,
    }),
  );
  const submit = async (): Promise<void> => setMade(await ask.run());
  const change = (part: Partial<typeof form>): void => setForm({ ...form, ...part });
  const complete = form.host.trim() !== "" && form.node.trim() !== "" && form.nic !== null && form.ttl !== null;
  const advertise = form.advertise.trim() || `${form.host.trim() || "HOST"}:7411`;
  if (made) return <Command made={made} advertise={advertise} tls={form.tls} onClose={onClose} />;
  const { problem } = ask;
  const actions = (
    <>
      <Button onClick={onClose}>Go back</Button>
      <Button kind="primary" type="submit" form="enrol" busy={ask.busy} disabled={!complete}>
        Make the command
      </Button>
    </>
  );
  return (
    <Dialog open onClose={onClose} title={again ? `Let ${again.name} join anew` : "Enrol a host"} actions={actions} wide>
      {again && (
        <Notice tone="warn">
          The host gets a new identity when the command runs on it; its present agent's token ends then. Bookings stay.
        </Notice>
      )}
      <form
        id="enrol"
        className="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (complete) void submit();
        }}
      >
        <TextField
          label="Name"
          hint="As transfers will name it"
          required
          autoFocus
          disabled={again !== undefined}
          value={form.host}
          onChange={(host) => change({ host })}
          error={problem?.of("host")}
        />
        <NodeField
          value={form.node}
          onChange={(node) => change({ node })}
          error={problem?.of("node")}
          disabled={again !== undefined}
        />
        <RateField
          label="NIC"
          hint="What its interface carries"
          required
          value={form.nic}
          onChange={(nic) => change({ nic })}
          error={problem?.of("nic_bps")}
        />
        <DurationField
          label="The command is good for"
          required
          value={form.ttl}
          onChange={(ttl) => change({ ttl })}
          error={problem?.of("ttl_s")}
        />
        <TextField
          label="Address for other agents"
          hint="Name or address and port at which they reach it"
          placeholder={advertise}
          value={form.advertise}
          onChange={(given) => change({ advertise: given })}
        />
        <CheckField
          label="Encrypt the data"
          hint="TLS 1.3 with a certificate of the agent's own"
          checked={form.tls}
          onChange={(tls) => change({ tls })}
        />
      </form>
      <Refusal problem={problem} />
    </Dialog>
  );
}

interface NodeFieldProps {
  value: string;
  onChange: (value: string) => void;
  error: string | undefined;
  disabled: boolean;
}

function NodeField({ value, onChange, error, disabled }: NodeFieldProps) {
  const links = useQuery<NetworkLink[]>("/v1/links");
  const nodes = useMemo(
    () =>
      [...new Set((links.data ?? []).filter((link) => link.host === null).flatMap((link) => [link.source, link.target]))].sort(),
    [links.data],
  );
  return (
    <Field label="Node" hint="Of the network, that it is attached to" error={error}>
      {(wired) => (
        <>
          <input
            {...wired}
            type="text"
            list="nodes"
            autoComplete="off"
            required
            disabled={disabled}
            value={value}
            onChange={(event) => onChange(event.target.value)}
          />
          <datalist id="nodes">
            {nodes.map((node) => (
              <option key={node} value={node} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

function Command({ made, advertise, tls, onClose }: { made: Made; advertise: string; tls: boolean; onClose: () => void }) {
  const broker = window.location.origin;
  const joining = { broker, token: made.token, advertise, tls };
  return (
    <Dialog open onClose={onClose} title={`Let ${made.host} join`} actions={<Button onClick={onClose}>Done</Button>} wide>
      <Joined made={made} />
      <p>
        Run this on {made.host}. It is good for one use, until <Time at={made.expires} />, and is <strong>not shown again</strong>:
        whoever runs it first, joins as {made.host}.
      </p>
      <Line title="The command" text={installCommand(joining)} />
      <details>
        <summary>Where the package bwb-agent is installed</summary>
        <Line title="The command for a package" text={enrolCommand(joining)} />
      </details>
      {isLoopback(broker) && (
        <Notice tone="warn">
          You reach the broker at {broker}, which other machines cannot. Put the address in that they know, or open this page there.
        </Notice>
      )}
    </Dialog>
  );
}

function Line({ title, text }: { title: string; text: string }) {
  return (
    <div className="stack">
      <pre className="enrol-command" role="group" tabIndex={0} aria-label={title}>
        {text.trimStart()}
      </pre>
      <div>
        <Copy text={text} label="Copy the command" />
      </div>
    </div>
  );
}

/** Says when the host has used its token. */
function Joined({ made }: { made: Made }) {
  const hosts = useQuery<Host[]>("/v1/hosts");
  const [before] = useState(() => enrolledAt(hosts.data, made.host));
  const now = enrolledAt(hosts.data, made.host);
  if (now === undefined || now === before) return <Notice tone="idle">Waiting for {made.host}.</Notice>;
  return (
    <Notice tone="good">
      <Link to={to.host(made.host)}>{made.host}</Link> has joined.
    </Notice>
  );
}

const enrolledAt = (hosts: readonly Host[] | undefined, name: string): string | undefined =>
  hosts?.find((host) => host.name === name)?.enrolled;
