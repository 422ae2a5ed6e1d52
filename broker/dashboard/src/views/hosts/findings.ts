// SPDX-License-Identifier: Apache-2.0
// Problems of a host, the worst first, each as a sentence that says what to do.
import type { Host } from "../../api/types";
import { rate } from "../../format/units";
import { capabilitiesOf, preferred } from "./capabilities";

export interface Finding {
  tone: "bad" | "warn" | "idle";
  /** For the list, one or two words. */
  word: string;
  text: string;
}

/** Rates are compared where they differ by more than this: reports are a second old, and steps fall between two of them. */
const DRIFT_SHARE = 0.02;

export function findingsOf(host: Host): Finding[] {
  const found = [...silence(host), ...drift(host), ...clock(host), ...means(host)];
  if (host.drained)
    found.push({ tone: "idle", word: "drained", text: "It is drained: it finishes what it has and takes nothing new." });
  const order = ["bad", "warn", "idle"];
  return found.sort((one, other) => order.indexOf(one.tone) - order.indexOf(other.tone));
}

function silence({ state, transfers }: Host): Finding[] {
  if (state === "down" || state === "stopped") {
    const waiting = transfers > 0 ? ` ${transfers} live ${transfers === 1 ? "transfer depends" : "transfers depend"} on it.` : "";
    if (state === "stopped")
      return [{ tone: "bad", word: "stopped", text: `Its agent said goodbye. Start the service bwb-agent on the host.${waiting}` }];
    return [
      {
        tone: "bad",
        word: "down",
        text: `Its agent is silent. Look at the service bwb-agent on the host, and at its way to the broker.${waiting}`,
      },
    ];
  }
  if (state === "late") return [{ tone: "warn", word: "late", text: "Its agent is late: soon it counts as down." }];
  return [];
}

/** Does the host do what it is told? */
export function drift(host: Host): Finding[] {
  const { revision, fetched_revision: fetched, state } = host;
  if (fetched === null)
    return [{ tone: state === "up" ? "warn" : "idle", word: "no plan yet", text: "Its agent has not asked for its plan yet." }];
  if (fetched < revision) {
    const behind = revision - fetched;
    return [
      {
        tone: "warn",
        word: "old plan",
        text: `It follows an older plan, ${behind === 1 ? "one change" : `${behind} changes`} behind what is booked.`,
      },
    ];
  }
  const { booked_bps: booked, applied_bps: applied } = host;
  if (Math.abs(booked - applied) <= DRIFT_SHARE * Math.max(booked, applied)) return [];
  return [
    {
      tone: "warn",
      word: "other rate",
      text: `${rate(booked)} is booked for what it sends now, and ${rate(applied)} is set on the host.`,
    },
  ];
}

function clock({ clock: said, state }: Host): Finding[] {
  if (state !== "up" || said === null || said.good) return [];
  return [
    {
      tone: "warn",
      word: "clock",
      text: `It cannot start transfers by the clock alone: ${said.reason ?? "its clock is not good enough"}.`,
    },
  ];
}

function means(host: Host): Finding[] {
  const capabilities = capabilitiesOf(host);
  const found: Finding[] = [];
  if (capabilities.mechanisms.length > 0 && !preferred(capabilities))
    found.push({
      tone: "bad",
      word: "no mechanism",
      text: "No mechanism can be used on it: nothing holds its transfers to their rates, and they fail.",
    });
  const { signals } = capabilities;
  if (signals && !signals.direct)
    found.push({
      tone: "warn",
      word: "signals",
      text: `Its agent cannot hear start signals of other agents: ${signals.reason || "it says no reason"}.`,
    });
  if (signals && signals.forged > 0)
    found.push({
      tone: "bad",
      word: "forged signals",
      text: `It heard ${signals.forged} start ${signals.forged === 1 ? "signal" : "signals"} that somebody forged.`,
    });
  return found;
}
