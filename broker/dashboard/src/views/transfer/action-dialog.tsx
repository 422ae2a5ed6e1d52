// SPDX-License-Identifier: Apache-2.0
// One action on one transfer. The broker previews it; confirmed, it is done on exactly the revision that was previewed.
import { type ComponentType, type ReactNode, useEffect, useState } from "react";
import { at, patch, post } from "../../api/client";
import type { Transfer } from "../../api/types";
import { invalidate, useAction } from "../../api/use";
import { Confirm, Loading, Notice, Time, toast } from "../../ui";
import { Besides, DeadlineForm, type FormProps, PriorityForm, RatesForm } from "./change-form";
import type { Change } from "./offers";
import type { ActionName } from "./permissions";
import { Refused } from "./refused";
import { ShownEffect } from "./shown-effect";
import { TransferName } from "./transfer-name";
import { type Asked, usePreview } from "./use-preview";

interface Kind {
  title: string;
  verb: string;
  done: string;
  danger?: true;
  form?: ComponentType<FormProps>;
  /** Of the form: an offer may change others, too. */
  fields?: readonly (keyof Change)[];
}

const KINDS: Record<ActionName, Kind> = {
  commit: { title: "Commit this transfer", verb: "Commit", done: "Committed" },
  pause: { title: "Pause this transfer", verb: "Pause", done: "Paused", danger: true },
  resume: { title: "Resume this transfer", verb: "Resume", done: "Resumed" },
  cancel: { title: "Cancel this transfer", verb: "Cancel transfer", done: "Canceled", danger: true },
  deadline: {
    title: "Change the deadline",
    verb: "Change deadline",
    done: "Deadline changed",
    form: DeadlineForm,
    fields: ["deadline"],
  },
  priority: {
    title: "Change the priority",
    verb: "Change priority",
    done: "Priority changed",
    form: PriorityForm,
    fields: ["priority", "best_effort"],
  },
  rates: {
    title: "Change the limits of its rate",
    verb: "Change limits",
    done: "Limits changed",
    form: RatesForm,
    fields: ["rate_max_bps", "rate_min_bps"],
  },
};

interface ActionDialogProps {
  action: ActionName;
  transfer: Transfer;
  /** Those that begin when it ends. */
  successors: readonly Transfer[];
  onClose: () => void;
  /** Read the transfer again: somebody else has changed it. */
  onConflict: () => void;
}

export function ActionDialog({ action, transfer, successors, onClose, onConflict }: ActionDialogProps) {
  const { title, verb, done, danger, form: Form, fields = [] } = KINDS[action];
  const [draft, setDraft] = useState<Change>({});
  const edit = (change: Change): void => setDraft((old) => meant({ ...old, ...change }, transfer));
  const changing = Object.keys(draft).length > 0;
  const preview = usePreview(asked(action, transfer, Form !== undefined, changing ? draft : undefined));
  const act = useAction(() => carryOut(action, transfer, changing ? draft : undefined));
  const refused = act.problem ?? preview.problem;
  const [conflict, setConflict] = useState(false);
  useEffect(() => {
    if (refused?.code !== "precondition-failed") return;
    setConflict(true);
    act.reset();
    onConflict();
  }, [refused, act.reset, onConflict]);
  const confirm = async (): Promise<void> => {
    if ((await act.run()) === undefined) return;
    toast(done);
    invalidate("/v1/transfers");
    onClose();
  };
  const ready = action === "commit" || preview.data !== undefined;
  return (
    <Confirm
      open
      onClose={onClose}
      title={title}
      verb={verb}
      danger={danger === true}
      busy={act.busy}
      disabled={!ready}
      onConfirm={() => void confirm()}
    >
      {conflict && (
        <Notice tone="warn">
          Somebody else changed this transfer meanwhile. It was read again: look at what is shown now before you go on.
        </Notice>
      )}
      {action === "commit" && <Committing transfer={transfer} />}
      {Form && <Form transfer={transfer} draft={draft} onChange={edit} problem={refused} />}
      <Besides draft={draft} fields={fields} />
      <div className="transfer-preview stack">
        {preview.loading && <Loading label="Asking the broker what it would do" />}
        {Form && !changing && <p className="muted">What a change would do is shown here before it is made.</p>}
        {refused && refused.code !== "precondition-failed" && <Refused problem={refused} onOffer={edit} />}
        {preview.data && action === "resume" && changing && (
          <Notice tone="idle">It is changed first, and then booked anew with what that allows.</Notice>
        )}
        {preview.data && !(action === "resume" && changing) && <ShownEffect transfer={transfer} preview={preview.data} />}
        <Waiting successors={successors} action={action} />
      </div>
    </Confirm>
  );
}

function asked(action: ActionName, transfer: Transfer, form: boolean, change: Change | undefined): Asked | null {
  if (action === "commit") return null; // the booking stays as it is
  const { revision } = transfer;
  if (change) return { path: at`/v1/transfers/${transfer.id}`, change, revision };
  return form ? null : { path: `${at`/v1/transfers/${transfer.id}`}/${action}`, revision };
}

async function carryOut(action: ActionName, transfer: Transfer, change: Change | undefined): Promise<Transfer> {
  const path = at`/v1/transfers/${transfer.id}`;
  const { revision } = transfer;
  if (action !== "resume")
    return change ? patch<Transfer>(path, change, { revision }) : post<Transfer>(`${path}/${action}`, undefined, { revision });
  // A paused transfer that no longer fits can be changed and then resumed: two requests, the second planned with the change.
  const changed = change ? await patch<Transfer>(path, change, { revision }) : transfer;
  return post<Transfer>(`${path}/resume`, undefined, { revision: changed.revision });
}

/** Without what is as it was: that is no change. */
function meant(change: Change, transfer: Transfer): Change {
  return Object.fromEntries(Object.entries(change).filter(([name, value]) => transfer[name as keyof Transfer] !== value)) as Change;
}

function Committing({ transfer }: { transfer: Transfer }): ReactNode {
  return (
    <p>
      The hold{" "}
      {transfer.hold_until && (
        <>
          , which ends at <Time at={transfer.hold_until} />,{" "}
        </>
      )}
      becomes a reservation. It begins at <Time at={transfer.plan.start} /> and finishes at <Time at={transfer.plan.finish} />.
    </p>
  );
}

const TO_SUCCESSORS: Partial<Record<ActionName, string>> = {
  cancel: "They will wait for it no more.",
  pause: "They will wait until it has been resumed and has ended.",
  resume: "They move with it, as far as their deadlines allow.",
  deadline: "They move with it, as far as their deadlines allow.",
  rates: "They move with it, as far as their deadlines allow.",
};

function Waiting({ successors, action }: { successors: readonly Transfer[]; action: ActionName }) {
  if (successors.length === 0 || !TO_SUCCESSORS[action]) return null;
  return (
    <Notice tone="warn">
      {successors.length === 1 ? "One transfer begins" : `${successors.length} transfers begin`} when this one ends:{" "}
      {successors.map(({ id }, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <TransferName id={id} />
        </span>
      ))}
      . {TO_SUCCESSORS[action]}
    </Notice>
  );
}
