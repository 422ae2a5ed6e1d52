// SPDX-License-Identifier: Apache-2.0
// Shows the secret of a new token once. It is in no URL, storage or cache of this page, and is gone when the dialog closes.
import type { NewToken } from "../../api/types";
import { Button, Copy, Dialog, Facts, Field, Notice, Time } from "../../ui";
import { Scopes } from "./scopes";

export function Secret({ token, onClose }: { token: NewToken; onClose: () => void }) {
  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={`Token ${token.name}`}
      actions={
        <Button kind="primary" onClick={onClose}>
          I have stored it
        </Button>
      }
    >
      <Notice tone="warn">
        This is the only time that the secret is shown. The broker keeps nothing but its hash: what is lost is replaced, not found
        again.
      </Notice>
      <div className="secret">
        <Field label="Secret">
          {(wired) => (
            <input
              {...wired}
              data-first
              className="mono"
              readOnly
              value={token.token ?? ""}
              spellCheck={false}
              onFocus={(event) => event.target.select()}
            />
          )}
        </Field>
        <Copy text={token.token ?? ""} label="Copy secret" />
      </div>
      <Facts
        items={[
          ["May", <Scopes key="may" of={token.scopes} />],
          ["Expires", token.expires === null ? "Never" : <Time key="at" at={token.expires} />],
        ]}
      />
    </Dialog>
  );
}
