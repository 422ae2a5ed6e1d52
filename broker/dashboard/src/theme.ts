// SPDX-License-Identifier: Apache-2.0
// The theme: light, dark, or that of the system. A session cookie keeps the choice: this page writes nothing to local storage.
import { createStore, useStore } from "./store";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const COOKIE = "bwb_theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function remembered(): Theme {
  const found = new RegExp(`(?:^|; )${COOKIE}=(\\w+)`).exec(document.cookie)?.[1];
  return THEMES.find((theme) => theme === found) ?? "system";
}

const chosen = createStore<Theme>(remembered());
/** What is on the screen, for what is drawn rather than styled. */
const shown = createStore<"light" | "dark">("light");

function apply(): void {
  const theme = chosen.get();
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  shown.set(theme === "system" ? (dark.matches ? "dark" : "light") : theme);
}

apply();
dark.addEventListener("change", apply);

export const useTheme = (): Theme => useStore(chosen);
export const useShownTheme = (): "light" | "dark" => useStore(shown);

export function setTheme(theme: Theme): void {
  // biome-ignore lint/suspicious/noDocumentCookie: cookieStore is asynchronous, and this page may be left at once.
  document.cookie = `${COOKIE}=${theme}; path=/; SameSite=Strict`;
  chosen.set(theme);
  apply();
}
