// SPDX-License-Identifier: Apache-2.0
// The command with which the administrator of a host makes it join (docs/host.md), as `bwb host enrol` prints it.

export interface Joining {
  /** Where the broker is, without a slash at the end. */
  broker: string;
  token: string;
  /** At which other agents reach this one. */
  advertise: string;
  tls: boolean;
}

/** By `curl` from the broker. */
export function installCommand(joining: Joining): string {
  return ` curl -fsS ${quoted(`${joining.broker}/v1/agents/install.sh`)} | ${carrying(joining)} sh -s -- ${options(joining)}`;
}

/** Where the package is installed already. */
export function enrolCommand(joining: Joining): string {
  return ` ${carrying(joining)} -u bwb bwb-agent enrol --broker ${quoted(joining.broker)} --state-dir /var/lib/bwb ${options(joining)}`;
}

// `sudo NAME=VALUE` would show the token to everybody who lists processes, and write it to sudo's log. The space before each
// command keeps it out of the history of shells that are set so.
const carrying = ({ token }: Joining): string => `BWB_ENROLMENT_TOKEN=${quoted(token)} sudo --preserve-env=BWB_ENROLMENT_TOKEN`;
const options = ({ advertise, tls }: Joining): string => `--advertise ${quoted(advertise)}${tls ? " --tls" : ""}`;

/** One word of a shell, whatever is in it. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9@%+=:,./_-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** Other hosts cannot reach a broker at such an address. */
export function isLoopback(broker: string): boolean {
  return /^https?:\/\/(?:127\.|localhost(?::|$)|\[::1\])/.test(broker);
}
