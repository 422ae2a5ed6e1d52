// SPDX-License-Identifier: Apache-2.0
// The actions on a host: drain it, undrain it, enrol it again, remove it.
import { useState } from "react";
import { to } from "../../addresses";
import { at, del, patch } from "../../api/client";
import type { Host } from "../../api/types";
import { invalidate, useAction } from "../../api/use";
import { navigate } from "../../router";
import { Button, Confirm, TextField, Time, toast } from "../../ui";
import { Enrol } from "../hosts/enrol";
import { Affected, lastEnd, useLive } from "./affected";

type Opened = "drain" | "enrol" | "remove" | undefined;

export function Actions({ host }: { host: Host }) {
  const [opened, open] = useState<Opened>();
  const close = (): void => open(undefined);
  return (
    <>
      <Button onClick={() => open("drain")}>{host.drained ? "Take transfers again" : "Drain"}</Button>
      <Button onClick={() => open("enrol")}>Let it join anew</Button>
      <Button kind="danger" onClick={() => open("remove")}>
        Remove
      </Button>
      {opened === "drain" && (host.drained ? <Undrain host={host} onClose={close} /> : <Drain host={host} onClose={close} />)}
      <Enrol open={opened === "enrol"} onClose={close} again={host} />
      {opened === "remove" && <Remove host={host} onClose={close} />}
    </>
  );
}

interface DialogProps {
  host: Host;
  onClose: () => void;
}

function useDrained({ host, onClose }: DialogProps, drained: boolean) {
  const change = useAction(() => patch(at`/v1/hosts/${host.name}`, { drained }));
  const act = async (): Promise<void> => {
    if ((await change.run()) === undefined) return;
    toast(drained ? `${host.name} takes nothing new` : `${host.name} takes transfers again`);
    invalidate("/v1/hosts");
    onClose();
  };
  return { act, change };
}

function Drain({ host, onClose }: DialogProps) {
  const { act, change } = useDrained({ host, onClose }, true);
  const live = useLive(host.name);
  const empty = live.data && lastEnd(live.data);
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Drain ${host.name}`}
      verb="Drain the host"
      busy={change.busy}
      problem={change.problem}
      onConfirm={() => void act()}
    >
      <p>
        It finishes what it has and takes nothing new: requests and quotes from and to {host.name} are refused until it is taken
        back. No promise breaks.
      </p>
      <Affected
        live={live}
        none="No live transfer uses it: it is empty at once."
        some={(count) => `${count === 1 ? "One live transfer goes" : `${count} live transfers go`} on as booked:`}
      />
      {empty !== undefined && (
        <p>
          By plan it is empty at <Time at={empty} />.
        </p>
      )}
    </Confirm>
  );
}

function Undrain({ host, onClose }: DialogProps) {
  const { act, change } = useDrained({ host, onClose }, false);
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Take ${host.name} back`}
      verb="Take transfers again"
      busy={change.busy}
      problem={change.problem}
      onConfirm={() => void act()}
    >
      <p>Transfers from and to {host.name} are admitted again, from now on. Nothing that is booked changes.</p>
    </Confirm>
  );
}

function Remove({ host, onClose }: DialogProps) {
  const [typed, setTyped] = useState("");
  const live = useLive(host.name);
  const remove = useAction(async () => {
    await del(at`/v1/hosts/${host.name}`);
    return true;
  });
  const act = async (): Promise<void> => {
    if (!(await remove.run())) return;
    toast(`${host.name} is removed`);
    navigate(to.hosts(), { replace: true });
    invalidate("/v1/hosts");
  };
  const count = live.data?.total ?? live.data?.items.length;
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Remove ${host.name}`}
      verb="Remove the host"
      danger
      busy={remove.busy}
      disabled={typed !== host.name || count !== 0}
      problem={remove.problem}
      onConfirm={() => void act()}
    >
      <p>
        The broker forgets it: its agent's token stops working, and the links of its NIC leave the network. To come back it has to
        join anew. What was received on the host stays there.
      </p>
      <Affected
        live={live}
        none="No live transfer uses it."
        some={(number) =>
          `It cannot be removed yet: ${number === 1 ? "one live transfer begins or ends" : `${number} live transfers begin or end`} here. Drain the host and wait, or cancel:`
        }
      />
      {count === 0 && (
        <TextField label={`Type ${host.name} to confirm`} value={typed} onChange={setTyped} autoComplete="off" spellCheck={false} />
      )}
    </Confirm>
  );
}
