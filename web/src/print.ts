/** On paper the page is light, whole and open. */
import type { State } from "./state";

/** Makes the page ready for paper before it is printed, and as it was after. */
export function printable(state: State, drawAll: () => void): void {
  let opened: HTMLDetailsElement[] | null = null;
  let theme = "";
  const before = (): void => {
    if (opened !== null) return;
    drawAll();
    theme = state.get("theme");
    state.set("theme", "light");
    // Tables of a chart's numbers stay folded: the chart is there.
    opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open], .data, .menu)")];
    for (const one of opened) one.open = true;
  };
  const after = (): void => {
    if (opened === null) return;
    for (const one of opened) one.open = false;
    opened = null;
    state.set("theme", theme);
  };
  window.addEventListener("beforeprint", before);
  window.addEventListener("afterprint", after);
}
