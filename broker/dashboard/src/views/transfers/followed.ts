// SPDX-License-Identifier: Apache-2.0
// A transfer together with how it goes (`outlook=true`): what the list and the page of one transfer ask for.
import type { Schemas, Transfer } from "../../api/types";

export type Outlook = Schemas["Outlook"];

const LIVE: ReadonlySet<string> = new Set<Transfer["state"]>(["HELD", "RESERVED", "ACTIVE"]);

export const isLive = ({ state }: Pick<Transfer, "state">): boolean => LIVE.has(state);
