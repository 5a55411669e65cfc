/** Light or dark: the reader's choice, or the system's. */
import type { State } from "./state";

const system = window.matchMedia("(prefers-color-scheme: dark)");

export function isDark(state: State): boolean {
  const chosen = state.get("theme");
  return chosen === "dark" || (chosen !== "light" && system.matches);
}

/** Puts the theme on the document, where the style sheet reads it. */
export function wear(state: State): void {
  document.documentElement.dataset.theme = isDark(state) ? "dark" : "light";
}

/** Calls back when the system changes its mind and the reader has not chosen. */
export function onSystemTheme(state: State, changed: () => void): void {
  system.addEventListener("change", () => {
    if (!["light", "dark"].includes(state.get("theme"))) changed();
  });
}
