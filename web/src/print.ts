/** On paper the page is light, whole and open. */
import type { State } from "./state";

/** Makes the page ready for paper before it is printed, and as it was after. */
export function printable(state: State, drawAll: () => void): void {
  let opened: HTMLDetailsElement[] | null = null;
  let theme = "";
  const before = (): void => {
    if (opened !== null) return;
    // Tables of a chart's numbers stay folded: the chart is there.
    opened = [];
    document.documentElement.dataset["printing"] = "1";
    drawAll();
    theme = state.get("theme");
    state.set("theme", "light");
    opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open], .data, .menu)")];
    for (const one of opened) one.open = true;
    // Charts that were made just now have not been told; and all have to be
    // drawn before they can be fitted to the paper.
    window.dispatchEvent(new Event("beforeprint"));
    fit(true);
  };
  const after = (): void => {
    if (opened === null) return;
    for (const one of opened) one.open = false;
    opened = null;
    delete document.documentElement.dataset["printing"];
    fit(false);
    state.set("theme", theme);
  };
  window.addEventListener("beforeprint", before);
  window.addEventListener("afterprint", after);
}

/** A drawing is as wide as its box on paper only where it has a view box. */
function fit(paper: boolean): void {
  for (const drawing of document.querySelectorAll<SVGSVGElement>(".plot svg[width][height]")) {
    if (paper) drawing.setAttribute("viewBox", `0 0 ${drawing.getAttribute("width")} ${drawing.getAttribute("height")}`);
    else drawing.removeAttribute("viewBox");
  }
}
