// SPDX-License-Identifier: Apache-2.0
// Who may do what: one's own session, and for administrators the tokens.
import { useState } from "react";
import { to } from "../../addresses";
import { signOut, useMay, useSession } from "../../api/session";
import type { NewToken, Token } from "../../api/types";
import { useAction, useQuery } from "../../api/use";
import { Answer, Button, Card, Denied, Facts, Link, Refusal, Time, View } from "../../ui";
import "./access.css";
import { Create } from "./create";
import { Scopes } from "./scopes";
import { Secret } from "./secret";
import { TokenTable } from "./token-table";

export default function Access() {
  const may = useMay();
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<NewToken>();
  const tokens = useQuery<Token[]>(may("admin") ? "/v1/tokens" : null);
  const created = (token: NewToken): void => {
    setCreating(false);
    setMade(token);
  };
  return (
    <View
      title="Access"
      actions={
        may("admin") && (
          <Button kind="primary" onClick={() => setCreating(true)}>
            New token
          </Button>
        )
      }
    >
      <OwnSession />
      <Card title="Tokens">
        {may("admin") ? <Answer of={tokens}>{(rows) => <TokenTable tokens={rows} />}</Answer> : <Denied />}
      </Card>
      {creating && <Create onClose={() => setCreating(false)} onCreated={created} />}
      {made && <Secret token={made} onClose={() => setMade(undefined)} />}
    </View>
  );
}

function OwnSession() {
  const session = useSession();
  const may = useMay();
  const leave = useAction(signOut);
  return (
    <Card
      title="My session"
      actions={
        <Button busy={leave.busy} onClick={() => void leave.run()}>
          Sign out
        </Button>
      }
    >
      <Facts
        items={[
          ["Signed in with the token", session.name],
          ["May", <Scopes key="may" of={session.scopes} />],
          ["Ends", session.expires && <Time at={session.expires} />],
          [
            "What I did",
            may("operate") ? (
              <Link key="did" to={`${to.audit()}?actor=${encodeURIComponent(session.id)}`}>
                In the audit log
              </Link>
            ) : null,
          ],
        ]}
      />
      <p className="muted">
        The session ends by itself at that time, an hour after the last page of it was closed, and with its token.
      </p>
      <Refusal problem={leave.problem} />
    </Card>
  );
}
