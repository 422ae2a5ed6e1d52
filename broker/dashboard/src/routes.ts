// SPDX-License-Identifier: Apache-2.0
// Which view shows what address (addresses.ts). A view is a chunk of its own, fetched when it is first shown; but
// for the overview, which most visits begin with: its chunk would wait, with its style sheet, beside the answers that it asks for.
import { type ComponentType, lazy } from "react";
import type { ViewProps } from "./addresses";
import Overview from "./views/overview";

export interface Route {
  pattern: string;
  /** In the navigation and as the title of the window. */
  title: string;
  navigation?: true;
  view: ComponentType<ViewProps<string>>;
  /** Fetches the view's chunk ahead of its first showing. */
  load?: () => Promise<unknown>;
}

type Module = { default: ComponentType<ViewProps<string>> };

const shown = (load: () => Promise<Module>): Pick<Route, "view" | "load"> => ({ view: lazy(load), load });

export const routes: readonly Route[] = [
  { pattern: "/", title: "Overview", navigation: true, view: Overview },
  { pattern: "/links", title: "Links", navigation: true, ...shown(() => import("./views/links")) },
  { pattern: "/links/:id", title: "Link", ...shown(() => import("./views/link")) },
  { pattern: "/transfers", title: "Transfers", navigation: true, ...shown(() => import("./views/transfers")) },
  { pattern: "/transfers/:id", title: "Transfer", ...shown(() => import("./views/transfer")) },
  { pattern: "/schedule", title: "Schedule", navigation: true, ...shown(() => import("./views/schedule")) },
  { pattern: "/hosts", title: "Hosts", navigation: true, ...shown(() => import("./views/hosts")) },
  { pattern: "/hosts/:id", title: "Host", ...shown(() => import("./views/host")) },
  { pattern: "/request", title: "Request", navigation: true, ...shown(() => import("./views/request")) },
  { pattern: "/jobs", title: "Jobs", navigation: true, ...shown(() => import("./views/jobs")) },
  { pattern: "/jobs/:kind/:id", title: "Job", ...shown(() => import("./views/job")) },
  { pattern: "/access", title: "Access", navigation: true, ...shown(() => import("./views/access")) },
  { pattern: "/audit", title: "Audit", navigation: true, ...shown(() => import("./views/audit")) },
  { pattern: "/signin", title: "Sign in", ...shown(() => import("./views/signin")) },
];

export interface Match {
  route: Route;
  params: Record<string, string>;
}

export function match(path: string): Match | undefined {
  for (const route of routes) {
    const params = paramsOf(route.pattern, path);
    if (params) return { route, params };
  }
  return undefined;
}

/** paramsOf("/jobs/:kind/:id", "/jobs/plan/job_1") -> { kind: "plan", id: "job_1" } */
export function paramsOf(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split("/");
  const given = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, name] of wanted.entries()) {
    const value = decoded(given[index] ?? "");
    if (name.startsWith(":") && value) params[name.slice(1)] = value;
    else if (name !== value) return undefined;
  }
  return params;
}

function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}
