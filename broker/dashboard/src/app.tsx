// SPDX-License-Identifier: Apache-2.0
// Who is signed in decides what is on the page: the sign-in form, or the shell with the view of the address.
import { Suspense, useEffect } from "react";
import { to } from "./addresses";
import { listen } from "./api/events";
import { resume, useSessionState } from "./api/session";
import { navigate, usePath } from "./router";
import { type Match, match } from "./routes";
import { Shell } from "./shell";
import { Empty, Failed, Loading, View } from "./ui";
import { Boundary } from "./ui/states";
import { Toasts } from "./ui/toast";
import { useHeadingFocus } from "./use-heading-focus";

export function App() {
  const state = useSessionState();
  const path = usePath();
  const found = match(path);
  const signedIn = state.is === "in";
  const signingIn = path === to.signin();

  useEffect(() => (signedIn ? listen() : undefined), [signedIn]);
  useEffect(() => {
    if (state.is !== "out" || signingIn) return;
    const here = window.location.pathname + window.location.search;
    navigate(here === "/" ? to.signin() : `${to.signin()}?next=${encodeURIComponent(here)}`, { replace: true });
  }, [state, signingIn]);
  useHeadingFocus(path, signedIn);

  return (
    <>
      {state.is === "unknown" && <Loading />}
      {state.is === "unreachable" && (
        <main>
          <Failed problem={state.problem} onRetry={() => void resume()} />
        </main>
      )}
      {state.is === "out" && signingIn && found && (
        <main>
          <Shown match={found} />
        </main>
      )}
      {signedIn && <Shell pattern={found?.route.pattern}>{found ? <Shown match={found} /> : <Nowhere />}</Shell>}
      <Toasts />
    </>
  );
}

function Shown({ match: { route, params } }: { match: Match }) {
  const { view: ViewOfRoute, pattern } = route;
  // Another thing of the same kind is another view: nothing of the one before is left in its state.
  const key = `${pattern} ${Object.values(params).join("/")}`;
  return (
    <Boundary of={key}>
      <Suspense key={key} fallback={<Loading />}>
        <ViewOfRoute params={params} />
      </Suspense>
    </Boundary>
  );
}

function Nowhere() {
  return (
    <View title="Not found">
      <Empty title="There is no page at this address">The navigation above leads to all there are.</Empty>
    </View>
  );
}
