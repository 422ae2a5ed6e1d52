// SPDX-License-Identifier: Apache-2.0
// The states of a view without data: loading, empty, failed, denied. <Answer> chooses between them and the data.
import { Component, type ReactNode } from "react";
import { asProblem, type Problem } from "../api/problem";
import { useSession } from "../api/session";
import { Button } from "./button";
import { Icon, type IconName } from "./icons";
import "./states.css";

interface Answered<T> {
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  outdated: boolean;
  reload: () => void;
}

interface AnswerProps<T> {
  /** What useQuery or usePages gave. */
  of: Answered<T>;
  /** What to say when there is nothing to show: false, a sentence, or an <Empty> with an action. */
  empty?: (data: T) => ReactNode | false;
  loading?: ReactNode;
  children: (data: T) => ReactNode;
}

export function Answer<T>({ of, empty, loading, children }: AnswerProps<T>) {
  const { data, problem, reload } = of;
  if (data === undefined) {
    if (!problem) return of.loading ? (loading ?? <Loading />) : null;
    return problem.denied ? <Denied problem={problem} /> : <Failed problem={problem} onRetry={reload} busy={of.loading} />;
  }
  const nothing = empty?.(data);
  return (
    <div className="answer" aria-busy={of.outdated || undefined}>
      {of.outdated && !problem && <div className="answer-waits" role="status" aria-label="Loading" />}
      {problem && <Old problem={problem} onRetry={reload} />}
      {nothing ? typeof nothing === "string" ? <Empty>{nothing}</Empty> : nothing : children(data)}
    </div>
  );
}

export function Loading({ label = "Loading" }: { label?: string }) {
  return (
    <div className="state loading" role="status">
      <span className="spinner" /> {label}…
    </div>
  );
}

function Box({
  icon,
  title,
  children,
  action,
  role,
}: {
  icon: IconName;
  title: string;
  children?: ReactNode;
  action?: ReactNode;
  role?: "alert";
}) {
  return (
    <div className={`state ${icon}`} role={role}>
      <Icon name={icon} />
      <div className="stack">
        <strong>{title}</strong>
        {children !== undefined && <div className="muted">{children}</div>}
        {action && <div>{action}</div>}
      </div>
    </div>
  );
}

export function Empty({ title = "Nothing here", children, action }: { title?: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <Box icon="idle" title={title} action={action}>
      {children}
    </Box>
  );
}

export function Failed({ problem, onRetry, busy = false }: { problem: Problem; onRetry?: () => void; busy?: boolean }) {
  const retry = onRetry && (
    <Button onClick={onRetry} busy={busy}>
      Try again
    </Button>
  );
  return (
    <Box icon="bad" role="alert" title={problem.status === 404 ? "There is no such thing" : problem.title} action={retry}>
      {problem.detail}
    </Box>
  );
}

/** For what the broker refused, or for what is not even asked because it would be. */
export function Denied({ problem, children }: { problem?: Problem; children?: ReactNode }) {
  const { name, scopes } = useSession();
  return (
    <Box icon="warn" title="You may not see this">
      {children ?? problem?.detail} You are signed in as {name} ({scopes.join(", ")}).
    </Box>
  );
}

/** The data is there, but the latest attempt to refresh it failed. */
function Old({ problem, onRetry }: { problem: Problem; onRetry: () => void }) {
  return (
    <div className="notice warn" role="status">
      <Icon name="warn" />
      <span>Could not be refreshed: {problem.detail}</span>
      <Button kind="quiet" onClick={onRetry}>
        Try again
      </Button>
    </div>
  );
}

/** Why an action was refused, beside the button that asked for it. Says which field, where the broker does. */
export function Refusal({ problem }: { problem: Problem | undefined }) {
  if (!problem) return null;
  return (
    <div className="notice bad" role="alert">
      <Icon name="bad" />
      <div>
        <strong>{problem.title}.</strong> {problem.detail}
      </div>
    </div>
  );
}

/** A note in the flow of a view. */
export function Notice({ tone, children }: { tone: "good" | "warn" | "bad" | "busy" | "idle"; children: ReactNode }) {
  return (
    <div className={`notice ${tone}`}>
      <Icon name={tone} />
      <div>{children}</div>
    </div>
  );
}

/** Keeps a fault of one view to that view. `of` is what the fault belongs to: with another one, the view is tried again. */
export class Boundary extends Component<{ of: string; children: ReactNode }, { problem: Problem | undefined; of: string }> {
  override state = { problem: undefined as Problem | undefined, of: this.props.of };

  static getDerivedStateFromError(reason: unknown) {
    return { problem: asProblem(reason) };
  }

  static getDerivedStateFromProps(props: { of: string }, state: { of: string }) {
    return props.of === state.of ? null : { of: props.of, problem: undefined };
  }

  override render(): ReactNode {
    if (!this.state.problem) return this.props.children;
    return <Failed problem={this.state.problem} onRetry={() => this.setState({ problem: undefined })} />;
  }
}
