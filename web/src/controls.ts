/** Controls that several sections use. Each keeps its value in the state. */
import { h, type Child } from "./dom";
import type { State } from "./state";

export interface Choice {
  value: string;
  label: string;
}

let count = 0;
/** An id that no other element of the page has. */
export const unique = (name: string): string => `${name}-${(count += 1)}`;

/** A labelled list to choose from. */
export function select(label: string, key: string, choices: Choice[], state: State): HTMLElement {
  const current = state.get(key);
  const element = h(
    "select",
    { id: unique("select"), onchange: () => state.set(key, element.value) },
    choices.map((choice) => h("option", { value: choice.value, selected: choice.value === current }, choice.label)),
  );
  return h("div", { class: "control" }, h("label", { for: element.id }, label), element);
}

/** A few choices side by side: radio buttons, so the arrow keys work. */
export function segments(label: string, key: string, choices: Choice[], state: State): HTMLElement {
  const name = unique("segments");
  const current = state.get(key);
  const parts = choices.map((choice) =>
    h(
      "label",
      null,
      h("input", { type: "radio", name, value: choice.value, checked: choice.value === current, onchange: () => state.set(key, choice.value) }),
      h("span", null, choice.label),
    ),
  );
  return h("fieldset", { class: "segments" }, h("legend", { class: "unseen" }, label), parts);
}

/** A box to tick; the state has `1` when it is. */
export function tick(label: string, key: string, state: State): HTMLElement {
  const box = h("input", { type: "checkbox", checked: state.is(key), onchange: () => state.set(key, box.checked ? "1" : "") });
  return h("label", { class: "tick" }, box, label);
}

/** Time without a keystroke after which what was typed counts, ms. */
const PAUSE_MS = 150;

/** A field for words to look for. */
export function search(label: string, key: string, placeholder: string, state: State): HTMLElement {
  let waiting = 0;
  const field = h("input", {
    type: "search",
    id: unique("search"),
    placeholder,
    value: state.get(key),
    spellcheck: "false",
    autocomplete: "off",
    oninput: () => {
      window.clearTimeout(waiting);
      waiting = window.setTimeout(() => state.set(key, field.value), PAUSE_MS);
    },
  });
  return h("div", { class: "control" }, h("label", { for: field.id }, label), field);
}

/** A button that looks like a link. */
export function link(text: Child, act: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
  return h("button", { type: "button", class: "link", ...attributes, onclick: act as EventListener }, text);
}

/** Text beside a button that copies it. */
export function copyable(text: string): HTMLElement {
  const said = h("span", { role: "status", class: "said" });
  const code = h("code", { tabindex: "0" }, text);
  const copy = async (): Promise<void> => {
    said.textContent = (await copied(text, code)) ? "copied" : "press Ctrl+C";
    window.setTimeout(() => said.replaceChildren(), 2_000);
  };
  return h("div", { class: "copyable" }, code, h("button", { type: "button", onclick: () => void copy() }, "Copy"), said);
}

/** A page opened from disk may not be allowed to write to the clipboard: then
 *  the text is selected for the reader to copy. */
async function copied(text: string, code: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const selection = window.getSelection();
    selection?.selectAllChildren(code);
    return document.execCommand("copy");
  }
}

/** A region that scrolls sideways by itself and can be reached by keyboard. */
export function scroller(label: string, ...children: Child[]): HTMLElement {
  return h("div", { class: "scroller", role: "region", "aria-label": label, tabindex: "0" }, children);
}
