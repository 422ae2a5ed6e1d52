// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { exact, parseRate, parseVolume, rate, share, volume } from "./units";

const plain = (shown: string): string => shown.replaceAll("\u202f", " ");

describe("rates and volumes", () => {
  it.each([
    [0, "0 bit/s"],
    [999, "999 bit/s"],
    [1000, "1 kbit/s"],
    [9_870_000_000, "9.87 Gbit/s"],
    [999_500_000, "1 Gbit/s"],
    [999_400_000, "999 Mbit/s"],
    [100_000_000_000, "100 Gbit/s"],
    [-2_500_000, "-2.5 Mbit/s"],
    [null, "–"],
  ])("%s is %s", (bps, shown) => expect(plain(rate(bps))).toBe(shown));

  it("names bytes", () => expect(plain(volume(1_234_567_890_123))).toBe("1.23 TB"));
  it("separates exact numbers", () => {
    expect(plain(exact(1_234_567))).toBe("1 234 567");
    expect(plain(exact(-999))).toBe("−999");
    expect(plain(exact(1234.5678))).toBe("1 234.5678");
  });
});

describe("shares", () => {
  it.each([
    [0, "0 %"],
    [0.0001, "< 0.1 %"],
    [0.0123, "1.23 %"],
    [0.1234, "12.3 %"],
    [0.9999, "99.9 %"],
    [1, "100 %"],
    [1.05, "105 %"],
  ])("%s is %s", (of, shown) => expect(plain(share(of))).toBe(shown));
});

describe("what people type", () => {
  it.each([
    ["10G", 10_000_000_000],
    ["2.5 Gbit/s", 2_500_000_000],
    ["800 mbps", 800_000_000],
    ["1e9", 1_000_000_000],
    ["12", 12],
    ["fast", null],
    ["10 GB/h", null],
    ["", null],
    ["-5G", null],
  ])("rate %s is %s", (given, bps) => expect(parseRate(given)).toBe(bps));

  it.each([
    ["1.5 TB", 1_500_000_000_000],
    ["20 GiB", 20 * 1024 ** 3],
    ["1 234 567", 1_234_567],
    ["10 Gbit/s", null],
  ])("volume %s is %s", (given, bytes) => expect(parseVolume(given)).toBe(bytes));

  it.each([1, 999, 123_000, 9_870_000_000, 5e15])("reads what it shows of %s", (value) => {
    expect(parseRate(rate(value))).toBe(value);
    expect(parseVolume(volume(value))).toBe(value);
  });
});
