// SPDX-License-Identifier: Apache-2.0
import { url } from "../../api/client";
import { type Codec, type StateOf, text } from "../../url-state";

/** RFC 3339, or "" for an open end. */
const instant = (): Codec<string> => ({ ...text(), read: ([first = ""]) => (Number.isNaN(Date.parse(first)) ? undefined : first) });

/** What is in the address: /audit?subject=tr_... is the history of one transfer. */
export const STATE = { text: text(), actor: text(), kind: text(), action: text(), subject: text(), from: instant(), to: instant() };
export type AuditState = StateOf<typeof STATE>;

export const question = (state: AuditState): string => url("/v1/audit-log", { ...state, limit: 200 });

export const maybeText = (given: string): string | null => (given === "" ? null : given);
