// SPDX-License-Identifier: Apache-2.0
// What stays around every view: navigation, whether what is shown is live, theme, and who is signed in.
import type { ReactNode } from "react";
import { useLiveness } from "./api/events";
import { asProblem } from "./api/problem";
import { signOut, useSession } from "./api/session";
import { useAction } from "./api/use";
import { Link } from "./router";
import { routes } from "./routes";
import "./shell.css";
import { setTheme, THEMES, type Theme, useTheme } from "./theme";
import { Button, Icon, type IconName, Tag, Time, toast } from "./ui";

interface ShellProps {
  /** Of the route that is shown, such as /links/:id. */
  pattern: string | undefined;
  children: ReactNode;
}

export function Shell({ pattern: shown, children }: ShellProps) {
  return (
    <>
      <a className="skip" href="#main">
        Skip to the view
      </a>
      <header className="shell">
        <Link to="/" className="shell-name">
          Bandwidth broker
        </Link>
        <nav aria-label="Views">
          <ul>
            {routes
              .filter((route) => route.navigation)
              .map(({ title, pattern }) => (
                <li key={pattern}>
                  <Link to={pattern} aria-current={current(pattern, shown)}>
                    {title}
                  </Link>
                </li>
              ))}
          </ul>
        </nav>
        <div className="shell-state">
          <Live />
          <ThemeSwitch />
          <Person />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

/** aria-current of a menu entry: "page" for the page itself, "true" for one below it, such as a link below Links. */
function current(pattern: string, shown: string | undefined): "page" | "true" | undefined {
  if (pattern === shown) return "page";
  return pattern !== "/" && shown?.startsWith(`${pattern}/`) ? "true" : undefined;
}

function Live() {
  const liveness = useLiveness();
  return (
    <span role="status" className="nowrap">
      {liveness.is === "live" && (
        <Tag tone="good" title="Changes show within a second">
          Live
        </Tag>
      )}
      {liveness.is === "connecting" && <Tag tone="idle">Connecting</Tag>}
      {liveness.is === "stale" && (
        <Tag tone="warn" title="The stream of events was cut off; it is being resumed">
          Stale since <Time at={liveness.since} />
        </Tag>
      )}
      {liveness.is === "down" && (
        <Tag tone="bad" title="The broker does not answer; it is asked again every few seconds">
          No connection since <Time at={liveness.since} />
        </Tag>
      )}
    </span>
  );
}

const ICONS: Record<Theme, IconName> = { system: "screen", light: "sun", dark: "moon" };
const NAMES: Record<Theme, string> = { system: "as the system", light: "light", dark: "dark" };

function ThemeSwitch() {
  const theme = useTheme();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  return (
    <Button
      kind="quiet"
      title={`Theme: ${NAMES[theme]}`}
      aria-label={`Theme: ${NAMES[theme]}. Change to ${NAMES[next]}`}
      onClick={() => setTheme(next)}
    >
      <Icon name={ICONS[theme]} />
    </Button>
  );
}

function Person() {
  const { name, scopes } = useSession();
  const leave = useAction(() => signOut().catch((reason: unknown) => toast(asProblem(reason))));
  return (
    <>
      <span className="shell-person" title={`Signed in as ${name}: ${scopes.join(", ")}`}>
        {name}
      </span>
      <Button kind="quiet" busy={leave.busy} onClick={() => void leave.run()}>
        Sign out
      </Button>
    </>
  );
}
