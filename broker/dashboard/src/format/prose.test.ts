// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { prose } from "./prose";
import { local } from "./time";

const plain = (shown: string): string => shown.replaceAll("\u202f", " ");

it("says numbers and instants as people read them", () => {
  const now = new Date("2026-01-01T12:00:00Z");
  const said =
    "100000000000000 bytes at 396547908829 bit/s do not fit for 9000.123 s between 2026-01-01T10:00:00.633553Z and 2027-01-01T10:00:00Z";
  const expected = `100 TB at 397 Gbit/s do not fit for 2 h 30 min between ${local("2026-01-01T10:00:00Z", now)} and ${local("2027-01-01T10:00:00Z")}`;
  expect(plain(prose(said, now))).toBe(expected);
});

it("leaves the rest alone", () =>
  expect(prose("link albq-cr6--elpa-cr6 binds, 12 bytes")).toBe("link albq-cr6--elpa-cr6 binds, 12 bytes"));
