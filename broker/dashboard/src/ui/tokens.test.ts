// SPDX-License-Identifier: Apache-2.0
// WCAG 2.2: text 4.5:1, parts of controls and of plots 3:1, computed from tokens.css itself.
import { describe, expect, it } from "vitest";
import css from "./tokens.css?raw";

const tokens = new Map(
  [...css.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name = "", light = "", dark = ""]) => [
    name,
    { light, dark },
  ]),
);

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((begin) => {
    const value = Number.parseInt(hex.slice(begin, begin + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(front: string, back: string, theme: "light" | "dark"): number {
  const [high = 0, low = 0] = [front, back].map((name) => luminance(tokens.get(name)?.[theme] ?? "")).sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

const GROUNDS = ["ground", "surface", "raised", "hover"];
const text: [string, string][] = [
  ...["text", "muted", "accent", "good", "warn", "bad"].flatMap((front) => GROUNDS.map((back): [string, string] => [front, back])),
  ...["good", "warn", "bad", "busy", "idle"].map((tone): [string, string] => [tone, `${tone}-ground`]),
  ...["good", "warn", "bad", "busy", "idle"].map((tone): [string, string] => ["text", `${tone}-ground`]),
  ...["good", "warn", "bad", "busy", "idle"].map((tone): [string, string] => ["accent", `${tone}-ground`]),
  ["on-accent", "accent"],
  ["on-danger", "danger"],
];
const shapes: [string, string][] = [
  ...GROUNDS.map((back): [string, string] => ["edge", back]),
  ...Array.from({ length: 10 }, (_, index): [string, string] => [`series-${index}`, "surface"]),
  ...Array.from({ length: 5 }, (_, index): [string, string] => [`heat-${index}`, "surface"]),
];

describe.each(["light", "dark"] as const)("%s", (theme) => {
  it.each(text)("%s is read on %s", (front, back) => expect(contrast(front, back, theme)).toBeGreaterThanOrEqual(4.5));
  it.each(shapes)("%s is seen on %s", (front, back) => expect(contrast(front, back, theme)).toBeGreaterThanOrEqual(3));
});
