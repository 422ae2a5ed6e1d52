// SPDX-License-Identifier: Apache-2.0
// Short messages at the edge of the page: what an action has done. Good ones go by themselves, bad ones stay until they are closed.
import { useEffect, useState } from "react";
import { Problem } from "../api/problem";
import { createStore, useStore } from "../store";
import { Button } from "./button";
import { Icon } from "./icons";
import "./toast.css";

interface Toast {
  id: number;
  text: string;
  tone: "good" | "bad" | "idle";
  action?: { label: string; run: () => void } | undefined;
}

const toasts = createStore<readonly Toast[]>([]);
const MOST = 4;
const STAYS_MS = 7_000;
let lastId = 0;

export function toast(what: string | Problem, options: Partial<Pick<Toast, "tone" | "action">> = {}): void {
  const text = what instanceof Problem ? `${what.title}. ${what.detail}` : what;
  const tone = options.tone ?? (what instanceof Problem ? "bad" : "good");
  toasts.set([...toasts.get(), { id: ++lastId, text, tone, action: options.action }].slice(-MOST));
}

function dismiss(id: number): void {
  toasts.set(toasts.get().filter((one) => one.id !== id));
}

/** Once, in the shell. Both regions are always there: a region that appears together with its text is not read out. */
export function Toasts() {
  const all = useStore(toasts);
  const bad = all.filter((one) => one.tone === "bad");
  const other = all.filter((one) => one.tone !== "bad");
  return (
    <div className="toasts">
      <div role="status" aria-live="polite">
        {other.map((one) => (
          <Shown key={one.id} toast={one} />
        ))}
      </div>
      <div role="alert">
        {bad.map((one) => (
          <Shown key={one.id} toast={one} />
        ))}
      </div>
    </div>
  );
}

function Shown({ toast: { id, text, tone, action } }: { toast: Toast }) {
  const [held, setHeld] = useState(false);
  useEffect(() => {
    if (held || tone === "bad") return;
    const timer = setTimeout(() => dismiss(id), STAYS_MS);
    return () => clearTimeout(timer);
  }, [id, held, tone]);
  const hold = {
    onMouseEnter: () => setHeld(true),
    onMouseLeave: () => setHeld(false),
    onFocus: () => setHeld(true),
    onBlur: () => setHeld(false),
  };
  return (
    <div className={`toast ${tone}`} {...hold}>
      <Icon name={tone} />
      <span>{text}</span>
      {action && (
        <Button
          kind="quiet"
          onClick={() => {
            action.run();
            dismiss(id);
          }}
        >
          {action.label}
        </Button>
      )}
      <Button kind="quiet" aria-label="Dismiss" onClick={() => dismiss(id)}>
        <Icon name="close" />
      </Button>
    </div>
  );
}
