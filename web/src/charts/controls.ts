import type { Context } from "../context";
import { fill, h, type Child } from "../dom";
import { label } from "./clean";

/** A choice among several, kept in the state under its key. */
export function select(context: Context, key: string, name: string, options: [value: string, label: string][], chosen: string): HTMLElement {
  const box = h(
    "select",
    { "data-control": key, onchange: () => context.state.set(key, box.value) },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, label(text, 60))),
  );
  box.value = chosen;
  return h("label", { class: "pick" }, h("span", null, label(name)), box);
}

/** Something that is on or off. */
export function toggle(context: Context, key: string, name: string, on = context.state.is(key)): HTMLElement {
  return h(
    "button",
    {
      type: "button", class: "toggle", "data-control": key, "aria-pressed": on ? "true" : "false",
      onclick: () => context.state.set(key, on ? "0" : "1"),
    },
    name,
  );
}

/** Whether a chart's axis is logarithmic: as its reader chose, else as its values ask. */
export function isLog(context: Context, id: string, automatic: boolean): boolean {
  const chosen = context.state.get(`log.${id}`);
  return chosen === "" ? automatic : chosen === "1";
}

export function logToggle(context: Context, id: string, automatic: boolean): HTMLElement {
  return toggle(context, `log.${id}`, "Log axis", isLog(context, id, automatic));
}

/** Fills anew and gives the focus back to the control that had it. */
export function refill(parent: HTMLElement, ...children: Child[]): void {
  const active = document.activeElement;
  const key = active !== null && parent.contains(active) ? active.getAttribute("data-control") : null;
  fill(parent, ...children);
  if (key === null) return;
  for (const element of parent.querySelectorAll<HTMLElement>("[data-control]")) {
    if (element.getAttribute("data-control") === key) element.focus({ preventScroll: true });
  }
}

/** The systems that the reader has hidden, in all charts. */
export function hidden(context: Context): Set<string> {
  return new Set(context.state.get("hide").split(",").filter(Boolean).map(decoded));
}

export function hide(context: Context, system: string, away: boolean): void {
  const names = hidden(context);
  if (away) names.add(system);
  else names.delete(system);
  context.state.set("hide", [...names].map(encodeURIComponent).join(","));
}

/** A name out of an address that anybody may have typed. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Calls back after changes of these keys (`slice.` stands for all of them), at
 *  most once a frame, for as long as the element is on the page. */
export function follow(context: Context, element: HTMLElement, keys: string[], redraw: () => void): void {
  let placed = element.isConnected;
  let due = false;
  const stop = context.state.subscribe((changed) => {
    placed ||= element.isConnected;
    if (placed && !element.isConnected) return stop();
    const concerned = [...changed].some((key) => keys.some((known) => (known.endsWith(".") ? key.startsWith(known) : key === known)));
    if (!concerned || due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      redraw();
    });
  });
}
