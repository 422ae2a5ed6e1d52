// SPDX-License-Identifier: Apache-2.0
// What the agent of a host says it can do. It is JSON of the agent's own making: what is not as expected is left out.
import type { Host } from "../../api/types";

export interface Mechanism {
  name: string;
  available: boolean;
  /** Why not; empty where it can be used. */
  reason: string;
}

export interface ObserveRule {
  /** A prefix, or "peer": the other host of the transfer. */
  address: string;
  /** Destination ports, such as "1024-65535"; "all ports". */
  ports: string;
}

export interface Capabilities {
  /** The host's preferred one first. */
  mechanisms: Mechanism[];
  modes: string[];
  kernel: string | null;
  cpus: number | null;
  congestionControl: string[];
  /** The packets that observed transfers may be made of; null: it does not say. */
  observe: ObserveRule[] | null;
  /** Start signals from agent to agent; null: it does not say. */
  signals: { direct: boolean; reason: string; forged: number } | null;
}

export function capabilitiesOf({ capabilities }: Pick<Host, "capabilities">): Capabilities {
  const said = capabilities ?? {};
  return {
    mechanisms: listOf(said.mechanisms).flatMap(mechanismOf),
    modes: listOf(said.modes).filter(isText),
    kernel: isText(said.kernel) && said.kernel !== "" ? said.kernel : null,
    cpus: typeof said.cpus === "number" ? said.cpus : null,
    congestionControl: listOf(said.congestion_control).filter(isText),
    observe: Array.isArray(said.observe) ? said.observe.flatMap(observeRuleOf) : null,
    signals: signalsOf(said.signals),
  };
}

const isText = (value: unknown): value is string => typeof value === "string";
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const recordOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;

/** Agents before 0.4 say the names of those that they can use, and no more. */
function mechanismOf(item: unknown): Mechanism[] {
  if (isText(item)) return [{ name: item, available: true, reason: "" }];
  const said = recordOf(item);
  if (!said || !isText(said.name)) return [];
  const available = said.available === true;
  const reason = isText(said.reason) ? said.reason : "";
  return [{ name: said.name, available, reason: available ? "" : reason || "it says no reason" }];
}

function observeRuleOf(item: unknown): ObserveRule[] {
  const said = recordOf(item);
  if (!said || !isText(said.address)) return [];
  return [{ address: said.address, ports: isText(said.destination_ports) ? said.destination_ports : "all ports" }];
}

function signalsOf(value: unknown): Capabilities["signals"] {
  const said = recordOf(value);
  if (!said) return null;
  return {
    direct: said.direct === true,
    reason: isText(said.reason) ? said.reason : "",
    forged: typeof said.forged === "number" ? said.forged : 0,
  };
}

/** What holds transfers to their rates where the request leaves it open. */
export const preferred = ({ mechanisms }: Capabilities): Mechanism | undefined => mechanisms.find((one) => one.available);
