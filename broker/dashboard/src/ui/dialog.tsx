// SPDX-License-Identifier: Apache-2.0
// The native <dialog>: it keeps the focus inside, closes with Escape, and gives the focus back to what opened it.
import { type ReactNode, useId, useLayoutEffect, useRef } from "react";
import type { Problem } from "../api/problem";
import { Button } from "./button";
import "./dialog.css";
import { Icon } from "./icons";
import { Refusal } from "./states";

interface DialogProps {
  open: boolean;
  onClose: () => void;
  title: ReactNode;
  /** Buttons at its foot. What has the attribute data-first, here or within, gets the focus; else the first that can. */
  actions?: ReactNode;
  wide?: boolean;
  children: ReactNode;
}

export function Dialog(props: DialogProps) {
  return props.open ? <Opened {...props} /> : null;
}

function Opened({ onClose, title, actions, wide, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // A layout effect, because it is undone while the dialog is still in the document: else the focus would not go back.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    element?.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={wide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        if (event.target !== event.currentTarget) return; // an <input type=file> within bubbles its own
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </header>
      <div className="dialog-body stack">{children}</div>
      {actions && <footer className="row end">{actions}</footer>}
    </dialog>
  );
}

interface ConfirmProps {
  open: boolean;
  onClose: () => void;
  title: ReactNode;
  /** What the button does, in the imperative: "Cancel transfer". Never "OK". */
  verb: string;
  danger?: boolean;
  busy?: boolean;
  /** While the preview loads, or what was typed is not yet enough. */
  disabled?: boolean;
  /** Why it was refused. */
  problem?: Problem | undefined;
  onConfirm: () => void;
  /** What it will do, and whose promises it breaks: the API's preview. */
  children: ReactNode;
}

export function Confirm({ verb, danger, busy, disabled, problem, onConfirm, onClose, children, ...rest }: ConfirmProps) {
  const actions = (
    <>
      {/* The way back has the focus: Enter, pressed too often, breaks nothing. */}
      <Button data-first onClick={onClose}>
        Go back
      </Button>
      <Button kind={danger ? "danger" : "primary"} busy={busy} disabled={disabled} onClick={onConfirm}>
        {verb}
      </Button>
    </>
  );
  return (
    <Dialog {...rest} onClose={onClose} actions={actions}>
      {children}
      <Refusal problem={problem} />
    </Dialog>
  );
}
