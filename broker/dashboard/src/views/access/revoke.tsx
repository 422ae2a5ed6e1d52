// SPDX-License-Identifier: Apache-2.0
import { at, del } from "../../api/client";
import { useSession } from "../../api/session";
import type { Token } from "../../api/types";
import { invalidate, useAction } from "../../api/use";
import { Confirm, Facts, Icon, Time, toast } from "../../ui";
import { Scopes } from "./scopes";
import { consequences } from "./tokens";

interface RevokeProps {
  token: Token;
  all: readonly Token[];
  onClose: () => void;
}

/** Asks once more, and says what stops. */
export function Revoke({ token, all, onClose }: RevokeProps) {
  const { id: own } = useSession();
  const revoke = useAction(async () => {
    await del(at`/v1/tokens/${token.id}`);
    return true;
  });
  const confirm = async (): Promise<void> => {
    if (!(await revoke.run())) return;
    toast(`${token.name} is revoked`);
    invalidate("/v1/tokens");
    invalidate("/v1/session");
    onClose();
  };
  return (
    <Confirm
      open
      danger
      title={`Revoke ${token.name}?`}
      verb="Revoke token"
      busy={revoke.busy}
      problem={revoke.problem}
      onClose={onClose}
      onConfirm={() => void confirm()}
    >
      <Facts
        items={[
          ["May", <Scopes key="may" of={token.scopes} />],
          ["Last used", token.last_used === null ? "Never" : <Time key="used" at={token.last_used} relative />],
        ]}
      />
      <ul className="consequences">
        {consequences(token, all, own, new Date()).map(({ bad, text }) => (
          <li key={text}>
            <Icon name={bad ? "bad" : "good"} /> <span>{text}</span>
          </li>
        ))}
      </ul>
      <p className="muted">A revoked token does not come back; make a new one instead.</p>
    </Confirm>
  );
}
