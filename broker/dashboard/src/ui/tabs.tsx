// SPDX-License-Identifier: Apache-2.0
// Tabs with one stop for the Tab key; arrow keys, Home and End go between them.
import { type KeyboardEvent, type ReactNode, useRef } from "react";
import "./tabs.css";

interface TabsProps<T extends string> {
  label: string;
  tabs: readonly { key: T; title: string; count?: number }[];
  value: T;
  onChange: (key: T) => void;
}

export function Tabs<T extends string>({ label, tabs, value, onChange }: TabsProps<T>) {
  const list = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    const now = tabs.findIndex((tab) => tab.key === value);
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    const tab = next === undefined ? undefined : tabs[next % tabs.length];
    if (!tab) return;
    event.preventDefault();
    onChange(tab.key);
    list.current?.querySelector<HTMLElement>(`#tab-${tab.key}`)?.focus();
  };
  return (
    <div ref={list} className="tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {tabs.map(({ key, title, count }) => (
        <button
          key={key}
          type="button"
          role="tab"
          id={`tab-${key}`}
          aria-selected={key === value}
          aria-controls={key === value ? `panel-${key}` : undefined}
          tabIndex={key === value ? 0 : -1}
          onClick={() => onChange(key)}
        >
          {title}
          {count !== undefined && <span className="tabs-count">{count}</span>}
        </button>
      ))}
    </div>
  );
}

/** Keys of tabs are unique on a page, and words. */
export function TabPanel<T extends string>({ of, value, children }: { of: T; value: T; children: ReactNode }) {
  if (of !== value) return null;
  return (
    <div className="stack" role="tabpanel" id={`panel-${of}`} aria-labelledby={`tab-${of}`}>
      {children}
    </div>
  );
}
