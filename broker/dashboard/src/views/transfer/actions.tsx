// SPDX-License-Identifier: Apache-2.0
import { useState } from "react";
import { useMay, useSession } from "../../api/session";
import type { Transfer } from "../../api/types";
import { Button } from "../../ui";
import { ActionDialog } from "./action-dialog";
import { type ActionName, barred, possible } from "./permissions";

const LABELS: Record<ActionName, string> = {
  commit: "Commit",
  resume: "Resume",
  pause: "Pause",
  deadline: "Deadline…",
  priority: "Priority…",
  rates: "Rate limits…",
  cancel: "Cancel",
};

interface ActionsProps {
  transfer: Transfer;
  successors: readonly Transfer[];
  onConflict: () => void;
}

export function Actions({ transfer, successors, onConflict }: ActionsProps) {
  const may = useMay();
  const { id } = useSession();
  const [open, setOpen] = useState<ActionName | null>(null);
  const why = barred(transfer, { id, submits: may("submit"), operates: may("operate") });
  const close = (): void => setOpen(null);
  return (
    <>
      {why ? (
        <span className="muted">{why}</span>
      ) : (
        possible(transfer).map((action) => (
          <Button
            key={action}
            kind={action === "commit" || action === "resume" ? "primary" : action === "cancel" ? "danger" : "plain"}
            onClick={() => setOpen(action)}
          >
            {LABELS[action]}
          </Button>
        ))
      )}
      {open && <ActionDialog action={open} transfer={transfer} successors={successors} onClose={close} onConflict={onConflict} />}
    </>
  );
}
