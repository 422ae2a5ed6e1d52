// SPDX-License-Identifier: Apache-2.0
// A change of a link in three steps: say what, see what it breaks, confirm; then see what became of each transfer.
import { type ReactNode, useState } from "react";
import { invalidate, useAction } from "../../api/use";
import { Button, Dialog, Notice, Refusal, toast } from "../../ui";
import { counted, Effect, type Settled } from "./effect";

export type OnBroken = "refuse" | "replan";

interface ChangeDialogProps {
  title: string;
  /** What the last button does: "Create window". */
  verb: string;
  /** Says what was done: "Window created". */
  done: string;
  /** What the change is, as text: a preview holds as long as this stays. Null: something is missing yet. */
  change: string | null;
  policy: OnBroken;
  ask: (preview: boolean) => Promise<Settled>;
  onClose: () => void;
  /** The fields. */
  children: ReactNode;
}

export function ChangeDialog({ title, verb, done, change, policy, ask, onClose, children }: ChangeDialogProps) {
  const [seen, setSeen] = useState<{ change: string; effect: Settled } | undefined>();
  const [effect, setEffect] = useState<Settled | undefined>();
  const preview = useAction(async () => ask(true));
  const apply = useAction(async () => ask(false));
  const known = seen && seen.change === change ? seen.effect : undefined;
  const refused = policy === "refuse" && known !== undefined && known.replanned.length > 0;

  const look = async (): Promise<void> => {
    apply.reset();
    const found = await preview.run();
    if (found && change !== null) setSeen({ change, effect: found });
  };
  const confirm = async (): Promise<void> => {
    const settled = await apply.run();
    if (!settled) return;
    invalidate("/v1/");
    toast(settled.replanned.length === 0 ? done : `${done}; ${counted(settled.replanned.length, "transfer")} planned anew`);
    if (settled.replanned.length === 0) onClose();
    else setEffect(settled);
  };
  if (effect) {
    return (
      <Dialog open wide title={done} onClose={onClose} actions={<Button onClick={onClose}>Close</Button>}>
        <Effect of={effect} />
      </Dialog>
    );
  }
  const actions = (
    <>
      <Button onClick={onClose}>Go back</Button>
      {known ? (
        <Button
          kind={known.replanned.length > 0 ? "danger" : "primary"}
          busy={apply.busy}
          disabled={refused}
          onClick={() => void confirm()}
        >
          {verb}
        </Button>
      ) : (
        <Button kind="primary" busy={preview.busy} disabled={change === null} onClick={() => void look()}>
          See what it breaks
        </Button>
      )}
    </>
  );
  return (
    <Dialog open wide title={title} onClose={onClose} actions={actions}>
      {children}
      <div className="stack" aria-live="polite">
        {known && <Effect of={known} />}
        {refused && (
          <Notice tone="idle">
            You chose to leave promises alone, so this change would be refused. Choose “plan them anew” to go on.
          </Notice>
        )}
      </div>
      <Refusal problem={preview.problem ?? apply.problem} />
    </Dialog>
  );
}
