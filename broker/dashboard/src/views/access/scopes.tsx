// SPDX-License-Identifier: Apache-2.0
import type { Scope } from "../../api/session";
import { impliedBy, scopeOf } from "./tokens";

/** Scopes as words, with what they mean on hover; without those that another one includes. */
export function Scopes({ of }: { of: readonly string[] }) {
  return (
    <span className="scopes">
      {of
        .filter((scope) => impliedBy(scope as Scope, of as readonly Scope[]) === undefined)
        .map((scope) => {
          const { word, means } = scopeOf(scope);
          return (
            <span key={scope} className="tag plain" title={means}>
              {word}
            </span>
          );
        })}
    </span>
  );
}
