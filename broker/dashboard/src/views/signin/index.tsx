// SPDX-License-Identifier: Apache-2.0
// A token for a session. The token is in this form only while it is typed, and goes to nobody but the broker.
import { type FormEvent, useEffect, useState } from "react";
import { signIn, useSessionState } from "../../api/session";
import { useAction } from "../../api/use";
import { navigate, ownPath, useSearch } from "../../router";
import { Button, Field, Notice, Refusal, View } from "../../ui";
import "./signin.css";

export default function SignIn() {
  const state = useSessionState();
  const next = ownPath(new URLSearchParams(useSearch()).get("next"));
  const [token, setToken] = useState("");
  const [missing, setMissing] = useState(false);
  const enter = useAction(signIn);
  useEffect(() => {
    if (state.is === "in") navigate(next, { replace: true });
  }, [state, next]);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const given = token.trim();
    setMissing(given === "");
    if (given === "") return;
    setToken(""); // refused or not: a secret does not stay in the page
    await enter.run(given);
  };
  return (
    <div className="signin">
      <View title="Sign in">
        {state.is === "out" && state.expired && (
          <Notice tone="warn">Your session has ended. Sign in to go on where you were.</Notice>
        )}
        <form className="card stack" onSubmit={(event) => void submit(event)}>
          <Field label="Token" error={missing ? "Paste a token first" : undefined}>
            {(wired) => (
              <input
                {...wired}
                type="password"
                name="token"
                autoComplete="off"
                spellCheck={false}
                // biome-ignore lint/a11y/noAutofocus: the one thing to do on this page.
                autoFocus
                value={token}
                onChange={(event) => setToken(event.target.value)}
              />
            )}
          </Field>
          <Refusal problem={enter.problem} />
          <div>
            <Button type="submit" kind="primary" busy={enter.busy}>
              Sign in
            </Button>
          </div>
        </form>
        <div className="muted stack">
          <p>
            Whoever runs the broker makes a token with <code>bwb token create NAME --scope operate</code>. The first one, with every
            right, is in the file <code>admin.token</code> of the state directory of <code>bwb up</code>.
          </p>
          <p>The token becomes a session in a cookie that scripts cannot read; nothing else of it is kept in this browser.</p>
        </div>
      </View>
    </div>
  );
}
