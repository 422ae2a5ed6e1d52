// SPDX-License-Identifier: Apache-2.0
import type { Scheduled } from "./rows";

/** A transfer of which nothing matters but what a test says of it. */
export const example: Scheduled = {
  id: "tr_1",
  label: null,
  project: null,
  source: "A",
  destination: "C",
  state: "RESERVED",
  mode: "reserve",
  paused: false,
  priority: 0,
  volume_bytes: null,
  start: null,
  finish: null,
  promised_finish: null,
  deadline: null,
  paths: [["AB"]],
  segments: [],
};
