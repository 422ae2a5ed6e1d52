// SPDX-License-Identifier: Apache-2.0
// How the data is moved and which data: mode, file or packets, mechanism. Only for hosts with an agent.
import type { Host } from "../../api/types";
import { CheckField, SelectField, TextField } from "../../ui";
import { capabilitiesOf } from "../hosts/capabilities";
import type { PartProps } from "./form";

const MODES = [
  { value: "auto", label: "Chosen by the broker" },
  { value: "reserve", label: "Reserve: capacity only" },
  { value: "managed", label: "Managed: the agents move a file" },
  { value: "wrapped", label: "Wrapped: a command moves it" },
  { value: "observed", label: "Observed: packets are classed" },
] as const;

const MECHANISMS = [
  { value: "auto", label: "As the host prefers" },
  { value: "pacing", label: "Pacing of sockets" },
  { value: "htb", label: "htb class" },
  { value: "fq", label: "fq" },
  { value: "window", label: "Window" },
  { value: "userland", label: "Userland" },
] as const;

const PROTOCOLS = [
  { value: "tcp", label: "TCP" },
  { value: "udp", label: "UDP" },
] as const;

export function Delivery(props: PartProps) {
  const { form, set, wrong, network } = props;
  const file =
    form.mode === "managed" || (form.mode === "auto" && network.hosts.has(form.source) && network.hosts.has(form.destination));
  return (
    <>
      <SelectField label="Mode" value={form.mode} onChange={(mode) => set({ mode })} options={MODES} error={wrong("mode")} />
      {file && <File {...props} />}
      {form.mode === "observed" && <Packets {...props} />}
      {(file || form.mode === "wrapped" || form.mode === "observed") && (
        <SelectField
          label="Mechanism"
          value={form.mechanism}
          onChange={(mechanism) => set({ mechanism })}
          options={MECHANISMS}
          error={wrong("mechanism")}
        />
      )}
    </>
  );
}

function File({ form, set, wrong }: PartProps) {
  return (
    <>
      <TextField
        label="File"
        hint="within the sender's served folder"
        spellCheck={false}
        value={form.file}
        onChange={(file) => set({ file })}
        error={wrong("payload.path") ?? wrong("payload")}
      />
      <TextField
        label="Put it at"
        hint="within the receiver's folder; by default under the same name"
        spellCheck={false}
        value={form.destination_file}
        onChange={(destination_file) => set({ destination_file })}
        error={wrong("payload.destination_path")}
      />
      <CheckField label="Overwrite what is there" checked={form.overwrite} onChange={(overwrite) => set({ overwrite })} />
      <CheckField
        label="Compare checksums"
        hint="SHA-256 of both ends"
        checked={form.verify}
        onChange={(verify) => set({ verify })}
      />
    </>
  );
}

/** What the source host lets be observed, as its agent says (`bwb-agent run --observe`). */
function observable(source: Host | undefined): string | undefined {
  const rules = source && capabilitiesOf(source).observe;
  if (!rules) return undefined;
  const allowed = rules.map(({ address, ports }) => `${ports} of ${address === "peer" ? "the other host" : address}`);
  return `${source.name} allows ${allowed.join(", ") || "none"}`;
}

function Packets({ form, set, wrong, network }: PartProps) {
  return (
    <>
      <SelectField
        label="Protocol"
        value={form.protocol}
        onChange={(protocol) => set({ protocol })}
        options={PROTOCOLS}
        error={wrong("payload.match.protocol")}
      />
      <TextField
        label="To the address"
        hint="by default that of the destination's agent"
        value={form.address}
        onChange={(address) => set({ address })}
        error={wrong("payload.match.address")}
      />
      <div className="request-pair">
        <TextField
          label="From ports"
          placeholder="5001-5010"
          hint="any"
          value={form.source_ports}
          onChange={(source_ports) => set({ source_ports })}
          error={wrong("payload.match.source_ports")}
        />
        <TextField
          label="To ports"
          placeholder="5001"
          required={form.address === ""}
          hint={observable(network.hosts.get(form.source))}
          value={form.destination_ports}
          onChange={(destination_ports) => set({ destination_ports })}
          error={wrong("payload.match.destination_ports") ?? wrong("payload.match")}
        />
      </div>
    </>
  );
}
