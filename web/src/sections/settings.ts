import type { Context, Section } from "../context";
import { scroller } from "../controls";
import { h } from "../dom";
import { clean } from "../text";
import { machine } from "./machine";

/** What was the same in all runs, on what machine, and how each system is built. */
export const settings: Section = {
  id: "settings",
  title: "Settings and build",
  has: ({ result }) => result.constants !== "" || result.machine.length > 0 || result.doctor.length > 0 || result.made.length > 0,
  render(context) {
    const { result } = context;
    return h(
      "div",
      { class: "settings" },
      result.constants !== "" && h("div", null, h("h3", null, "What was measured"), h("p", null, clean(result.constants, 800))),
      (result.machine.length > 0 || result.doctor.length > 0) && machine(result),
      result.made.length > 0 && howMade(context),
    );
  },
};

/** A row a system: language, call, copies, flags, by the agents' own words. */
function howMade(context: Context): HTMLElement {
  const { made } = context.result;
  const first = ["language", "runtime", "binding", "library", "call", "copies", "memory", "build", "flags"];
  const said = [...new Set(made.flatMap(({ texts }) => texts.map(([what]) => what)))];
  const heads = [...first.filter((what) => said.includes(what)), ...said.filter((what) => !first.includes(what)).sort()];
  const cell = (texts: [string, string][], head: string) => [...new Set(texts.filter(([what]) => what === head).map(([, how]) => clean(how, 400)))].join("; ") || "—";
  const table = h(
    "table",
    { class: "grid made" },
    h("caption", { class: "unseen" }, "How the bindings are made"),
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "system"), heads.map((head) => h("th", { scope: "col" }, clean(head))))),
    h("tbody", null, made.map(({ system, texts }) => h("tr", null, h("th", { scope: "row" }, clean(system)), heads.map((head) => h("td", null, cell(texts, head)))))),
  );
  return h("div", null, h("h3", null, "How the bindings are made"), h("p", { class: "muted" }, "By the agents' own words."), scroller("How the bindings are made", table));
}
