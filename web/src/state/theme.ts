/** Light or dark: the system's, until a person chooses. */

import { effect, signal } from "@preact/signals";

import { kept } from "./kept.ts";

export type Theme = "system" | "light" | "dark";

export const THEMES: readonly Theme[] = ["system", "light", "dark"];

export const theme = signal<Theme>(kept.read("theme", THEMES) ?? "system");

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset["theme"];
  else root.dataset["theme"] = theme.value;
});

export function chooseTheme(chosen: Theme): void {
  kept.write("theme", chosen);
  theme.value = chosen;
}
