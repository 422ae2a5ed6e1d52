// SPDX-License-Identifier: Apache-2.0
// Where the transfers are that a number of the overview counts.

import { to } from "../../addresses";
import { url } from "../../api/client";

const LIVE = ["RESERVED", "ACTIVE"];

export const listOf = {
  promise: (promise: string | readonly string[]): string => url(to.transfers(), { promise, state: LIVE }),
  endedPromise: (promise: string, since: string): string => url(to.transfers(), { promise, ended_after: since }),
  live: (state: string): string => url(to.transfers(), { state }),
  ended: (state: string, since: string): string => url(to.transfers(), { state, ended_after: since }),
  atNode: (node: string): string => url(to.transfers(), { node }),
};
