// SPDX-License-Identifier: Apache-2.0
// The tokens of the theme as colours that a canvas takes. A custom property is text; only a real property computes light-dark().
import { useMemo } from "react";
import { useShownTheme } from "../theme";

const NAMES = [
  "ground",
  "surface",
  "raised",
  "text",
  "muted",
  "line",
  "edge",
  "accent",
  "good",
  "warn",
  "bad",
  "busy",
  "idle",
  "good-ground",
  "warn-ground",
  "bad-ground",
  "busy-ground",
  "idle-ground",
] as const;
type Name = (typeof NAMES)[number];

export interface Colours extends Readonly<Record<Name, string>> {
  readonly series: readonly string[];
  /** Colour of a booked share, 0 to 1. */
  heat(share: number): string;
  /** Any token by its name, or a colour as it is: "accent", "series-3", "#123456". */
  of(name: string): string;
  readonly font: string;
}

const SERIES = 10;
const HEAT = 5;

function resolve(): Colours {
  const probe = document.createElement("span");
  document.body.append(probe);
  const computed = (token: string): string => {
    probe.style.color = `var(--${token})`;
    return getComputedStyle(probe).color;
  };
  const named = Object.fromEntries(NAMES.map((name) => [name, computed(name)])) as Record<Name, string>;
  const series = Array.from({ length: SERIES }, (_, index) => computed(`series-${index}`));
  const heats = Array.from({ length: HEAT }, (_, index) => computed(`heat-${index}`));
  const font = getComputedStyle(document.body).fontFamily;
  probe.remove();
  const byToken = new Map<string, string>([
    ...Object.entries(named),
    ...series.map((colour, index): [string, string] => [`series-${index}`, colour]),
  ]);
  return {
    ...named,
    series,
    font,
    heat: (share) => heats[Math.max(0, Math.min(HEAT - 1, Math.floor(share * HEAT)))] ?? named.idle,
    of: (name) => byToken.get(name) ?? name,
  };
}

/** Resolved again when the theme changes. */
export function useColours(): Colours {
  const theme = useShownTheme();
  return useMemo(() => resolve(), [theme]);
}
