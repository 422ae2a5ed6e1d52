// SPDX-License-Identifier: Apache-2.0
// Components for layout: the page with its heading, cards, figures and facts.
import { type ReactNode, useEffect, useId } from "react";
import { Link } from "../router";
import { Icon } from "./icons";
import "./layout.css";
import type { Tone } from "./tag";

interface ViewProps {
  /** Of the page, and of the window. */
  title: string;
  actions?: ReactNode;
  /** Beside the title: a state, where it belongs. */
  lead?: ReactNode;
  children: ReactNode;
}

export function View({ title, actions, lead, children }: ViewProps) {
  useEffect(() => {
    document.title = `${title} · Bandwidth broker`;
  }, [title]);
  return (
    <div className="view stack">
      <header className="row apart">
        <div className="row">
          {/* The shell moves the focus here on navigation, so that a reader of the screen hears where they are. */}
          <h1 tabIndex={-1}>{title}</h1>
          {lead}
        </div>
        {actions && <div className="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Card({ title, actions, children }: { title?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section className="card stack" aria-labelledby={title ? id : undefined}>
      {(title || actions) && (
        <header className="row apart">
          {title && <h2 id={id}>{title}</h2>}
          {actions && <div className="row">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

interface FigureProps {
  label: string;
  value: ReactNode;
  note?: ReactNode;
  tone?: Tone;
  /** Where to see what is counted. */
  to?: string;
}

/** One number that is read from across the room. */
export function Figure({ label, value, note, tone = "plain", to }: FigureProps) {
  return (
    <div className={`card figure ${tone}`}>
      <div className="figure-label">
        {tone !== "plain" && <Icon name={tone} />}
        {to ? <Link to={to}>{label}</Link> : label}
      </div>
      <div className="figure-value">{value}</div>
      {note && <div className="muted">{note}</div>}
    </div>
  );
}

/** Names and values of one thing. A value of null or undefined is left out. */
export function Facts({ items }: { items: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {items
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
