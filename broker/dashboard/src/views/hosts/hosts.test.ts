// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Host } from "../../api/types";
import { capabilitiesOf, preferred } from "./capabilities";
import { findingsOf } from "./findings";
import { enrolCommand, installCommand, isLoopback, quoted } from "./install";
import { clockOf, offset } from "./words";

const CLOCK = {
  offset_us: -120,
  error_us: 300,
  adjtimex_error_us: 1500,
  synchronised: true,
  steps: 0,
  last_step_us: null,
  at: null,
  good: true,
  reason: null,
};
const WELL: Host = {
  name: "dtn-a",
  node: "A",
  nic_bps: 1e11,
  data_address: "dtn-a:7411",
  tls: true,
  agent_version: "0.5.0",
  capabilities: { mechanisms: [{ name: "pacing", available: true }], signals: { direct: true, forged: 0 } },
  clock: CLOCK,
  drained: false,
  up: true,
  state: "up",
  revision: 7,
  fetched_revision: 7,
  enrolled: "2026-01-01T00:00:00Z",
  last_seen: "2026-01-01T00:00:00Z",
  transfers: 2,
  booked_bps: 1_000_000,
  applied_bps: 1_000_000,
  sending_bps: 990_000,
  receiving_bps: 0,
};

const words = (more: Partial<Host>): string[] => findingsOf({ ...WELL, ...more }).map(({ tone, word }) => `${tone}: ${word}`);

describe("findings", () => {
  it("are none where all is well", () => expect(words({})).toEqual([]));

  it.each<[Partial<Host>, string[]]>([
    [{ state: "down" }, ["bad: down"]],
    [{ state: "late" }, ["warn: late"]],
    [{ drained: true }, ["idle: drained"]],
    [{ fetched_revision: 5 }, ["warn: old plan"]],
    [{ fetched_revision: null }, ["warn: no plan yet"]],
    [{ applied_bps: 500_000 }, ["warn: other rate"]],
    [{ applied_bps: 990_000 }, []],
    [{ booked_bps: 0, applied_bps: 10 }, ["warn: other rate"]],
    [{ clock: { ...CLOCK, good: false, reason: "too far off" } }, ["warn: clock"]],
    [{ clock: { ...CLOCK, good: false, reason: "silent" }, state: "down", drained: true }, ["bad: down", "idle: drained"]],
    [{ capabilities: { mechanisms: [{ name: "htb", available: false, reason: "needs CAP_NET_ADMIN" }] } }, ["bad: no mechanism"]],
    [{ capabilities: { signals: { direct: false, reason: "port in use", forged: 3 } } }, ["bad: forged signals", "warn: signals"]],
  ])("of %j", (more, expected) => expect(words(more)).toEqual(expected));
});

describe("capabilities", () => {
  it("says which mechanism is used, and why others are not", () => {
    const said = capabilitiesOf({
      capabilities: {
        mechanisms: [
          { name: "htb", available: false, reason: "needs CAP_NET_ADMIN" },
          { name: "pacing", available: true },
        ],
      },
    });
    expect(preferred(said)?.name).toBe("pacing");
    expect(said.mechanisms[0]).toEqual({ name: "htb", available: false, reason: "needs CAP_NET_ADMIN" });
  });

  it("takes names alone, as old agents say", () =>
    expect(preferred(capabilitiesOf({ capabilities: { mechanisms: ["fq"] } }))?.name).toBe("fq"));

  it.each([null, {}, { mechanisms: "pacing", modes: 7, kernel: {}, signals: "yes", cpus: "8" }, { mechanisms: [null, 7, {}] }])(
    "is not led astray by %j",
    (capabilities) =>
      expect(capabilitiesOf({ capabilities: capabilities as Host["capabilities"] })).toEqual({
        mechanisms: [],
        modes: [],
        kernel: null,
        cpus: null,
        congestionControl: [],
        observe: null,
        signals: null,
      }),
  );

  it("names the packets that may be observed", () => {
    const observe = [{ address: "peer", destination_ports: "1024-65535" }, { address: "192.0.2.0/24" }, "peer", {}];
    expect(capabilitiesOf({ capabilities: { observe } }).observe).toEqual([
      { address: "peer", ports: "1024-65535" },
      { address: "192.0.2.0/24", ports: "all ports" },
    ]);
  });
});

describe("the command for a new host", () => {
  const joining = { broker: "https://broker.example.org", token: "bwe_abc", advertise: "dtn-a:7411", tls: true };

  it("carries the token in the environment, not in arguments", () => {
    expect(installCommand(joining)).toBe(
      " curl -fsS https://broker.example.org/v1/agents/install.sh | BWB_ENROLMENT_TOKEN=bwe_abc sudo --preserve-env=BWB_ENROLMENT_TOKEN sh -s -- --advertise dtn-a:7411 --tls",
    );
    expect(enrolCommand({ ...joining, tls: false })).toBe(
      " BWB_ENROLMENT_TOKEN=bwe_abc sudo --preserve-env=BWB_ENROLMENT_TOKEN -u bwb bwb-agent enrol --broker https://broker.example.org --state-dir /var/lib/bwb --advertise dtn-a:7411",
    );
  });

  it.each([
    ["dtn-a:7411", "dtn-a:7411"],
    ["a b", "'a b'"],
    ["$(reboot)", "'$(reboot)'"],
    ["it's", `'it'"'"'s'`],
    ["", "''"],
  ])("quotes %s for the shell", (word, shown) => expect(quoted(word)).toBe(shown));

  it("warns of a broker that no other host reaches", () => {
    expect(
      [
        "http://127.0.0.1:7410",
        "http://localhost:7410",
        "http://[::1]:7410",
        "https://localhost.example.org",
        "https://broker.example.org",
      ].map(isLoopback),
    ).toEqual([true, true, true, false, false]);
  });
});

describe("clocks", () => {
  it("have a sign and a bound", () => {
    expect([0, 1_500, -120, 2_345_678].map((us) => offset(us).replaceAll("\u202f", " "))).toEqual([
      "0 µs",
      "+1.5 ms",
      "−120 µs",
      "+2.35 s",
    ]);
    expect(clockOf(CLOCK).replaceAll("\u202f", " ")).toBe("−120 µs ± 300 µs");
  });
});
