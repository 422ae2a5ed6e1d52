// SPDX-License-Identifier: Apache-2.0
import { type ButtonHTMLAttributes, type ReactNode, useEffect, useState } from "react";
import { Link } from "../router";
import "./button.css";
import { Icon, type IconName } from "./icons";

export type ButtonKind = "plain" | "primary" | "danger" | "quiet";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: ButtonKind;
  /** What it does is on its way: it says so and takes no second click, but keeps the focus. */
  busy?: boolean;
  icon?: IconName;
  /** In a dialog: gets the focus when it opens. */
  "data-first"?: boolean;
}

export function Button({ kind = "plain", busy = false, icon, children, onClick, className = "", ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={`button ${kind} ${className}`}
      aria-busy={busy || undefined}
      aria-disabled={busy || undefined}
      onClick={busy ? (event) => event.preventDefault() : onClick}
      {...rest}
    >
      {busy ? <span className="spinner" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export function ButtonLink({ to, kind = "plain", children }: { to: string; kind?: ButtonKind; children: ReactNode }) {
  return (
    <Link to={to} className={`button ${kind}`}>
      {children}
    </Link>
  );
}

/** Copies `text`. Works on plain http too, where browsers give no clipboard. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSaid(""), 2_500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async (): Promise<void> => setSaid((await copied(text)) ? "Copied" : "Not copied: select the text");
  return (
    <Button icon="copy" onClick={() => void copy()}>
      <span aria-live="polite">{said || label}</span>
    </Button>
  );
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text); // undefined on plain http, which throws
    return true;
  } catch {
    return copiedTheOldWay(text);
  }
}

function copiedTheOldWay(text: string): boolean {
  const area = document.createElement("textarea");
  const focused = document.activeElement as HTMLElement | null;
  area.value = text;
  // Inside of an open dialog, because everything else on the page is inert then.
  (focused?.closest("dialog") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return done;
}
