// SPDX-License-Identifier: Apache-2.0
// Who is signed in, and what they may do. The session is an HttpOnly cookie; this page never holds the token longer than one call.
import { createStore, useStore } from "../store";
import { forgetEverything } from "./cache";
import { del, get, onUnauthorized, post } from "./client";
import { asProblem, type Problem } from "./problem";

export type Scope = "read" | "submit" | "operate" | "admin" | "agent";

export interface Session {
  /** The token's; what it books has it as `owner`. */
  id: string;
  name: string;
  scopes: Scope[];
  /** RFC 3339: when the cookie ends. */
  expires: string | null;
}

export type SessionState =
  | { is: "unknown" } // not asked yet
  | { is: "unreachable"; problem: Problem }
  | { is: "out"; expired: boolean }
  | { is: "in"; session: Session };

// What each scope includes, as in broker/fleet/tokens.py, which decides. Here it only hides actions that would be refused.
const IMPLIED: Record<Scope, readonly Scope[]> = {
  read: ["read"],
  submit: ["submit", "read"],
  operate: ["operate", "submit", "read"],
  admin: ["admin", "read"],
  agent: ["agent"],
};

const store = createStore<SessionState>({ is: "unknown" });
let expiry: ReturnType<typeof setTimeout> | undefined;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const useSessionState = (): SessionState => useStore(store);

/** Inside of a view somebody is always signed in. */
export function useSession(): Session {
  const state = useStore(store);
  return state.is === "in" ? state.session : { id: "", name: "", scopes: [], expires: null };
}

export function grants(scopes: readonly Scope[], wanted: Scope): boolean {
  return scopes.some((held) => IMPLIED[held]?.includes(wanted));
}

/** const may = useMay(); may("operate") && <Button ...> */
export function useMay(): (wanted: Scope) => boolean {
  const { scopes } = useSession();
  return (wanted) => grants(scopes, wanted);
}

export async function resume(): Promise<void> {
  try {
    enter(await get<Session>("/v1/session"));
  } catch (reason) {
    const problem = asProblem(reason);
    store.set(problem.status === 401 ? { is: "out", expired: false } : { is: "unreachable", problem });
  }
}

/** Throws a Problem when the token is not accepted. */
export async function signIn(token: string): Promise<void> {
  forgetEverything();
  enter(await post<Session>("/v1/session", { token }));
}

export async function signOut(): Promise<void> {
  await del("/v1/session");
  leave(false);
}

function enter(session: Session): void {
  store.set({ is: "in", session });
  clearTimeout(expiry);
  if (session.expires === null) return;
  const left = Date.parse(session.expires) - Date.now();
  // Ask rather than believe this machine's clock.
  if (left < LONGEST_TIMER_MS) expiry = setTimeout(() => void resume(), Math.max(left, 1_000));
}

function leave(expired: boolean): void {
  clearTimeout(expiry);
  forgetEverything();
  store.set({ is: "out", expired });
}

onUnauthorized(() => {
  if (store.get().is === "in") leave(true);
});
