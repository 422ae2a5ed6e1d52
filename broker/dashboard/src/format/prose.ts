// SPDX-License-Identifier: Apache-2.0
// The broker explains itself in exact numbers: "100000000000000 bytes do not fit before 2026-01-01T00:00:00Z". People read units
// and local time; the sentence as it came belongs on hover.
import { duration, local } from "./time";
import { rate, volume } from "./units";

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const VOLUME = /\b(\d{4,}) bytes\b/g;
const SECONDS = /\b(\d+(?:\.\d+)?) s\b/g;
const RATE = /\b(\d{4,}) bit\/s/g;

export function prose(sentence: string, now: Date = new Date()): string {
  return sentence
    .replace(INSTANT, (found) => local(found, now))
    .replace(SECONDS, (_, digits: string) => duration(Number(digits)))
    .replace(VOLUME, (_, digits: string) => volume(Number(digits)))
    .replace(RATE, (_, digits: string) => rate(Number(digits)));
}
