import { select, segments } from "./controls";
import { looks, type Context } from "./context";
import { h } from "./dom";
import { Slots } from "./lazy";
import type { Page } from "./model";
import { kept } from "./preserve";
import { printable } from "./print";
import { Evidence } from "./sections/evidence";
import { SECTIONS } from "./sections/index";
import type { State } from "./state";
import { clean, many } from "./text";
import { isDark, onSystemTheme, wear } from "./theme";

/** The page around its sections: head, navigation, and the one dialog. */
export class App {
  /** At the foot of the window: what a program that is still at work says. */
  readonly strip = h("div", { class: "strip", hidden: true });
  private readonly shell = h("div", { class: "shell" });
  private readonly evidence = new Evidence();
  private slots: Slots | null = null;

  constructor(root: HTMLElement, private page: Page, readonly state: State) {
    root.append(this.shell, this.strip, this.evidence.element);
    onSystemTheme(state, () => this.again());
    printable(state, () => this.slots?.all());
    this.mount();
    const at = state.get("at");
    if (at !== "") this.slots?.go(at);
  }

  /** Another page, of the same study further on: the reader's place is kept. */
  replace(page: Page): void {
    this.page = page;
    this.again();
  }

  /** Draws all anew that was drawn, the reader's place kept. */
  private again(): void {
    const restore = kept(this.shell);
    const drawn = this.slots?.drawn() ?? [];
    this.mount();
    this.slots?.draw(drawn);
    restore();
  }

  /** Runs that the page counts: of very many it does not hold all records. */
  runs(): number {
    const { valid, partly, invalid, failed } = this.page.results[0]?.runs ?? { valid: 0, partly: 0, invalid: 0, failed: 0 };
    return valid + partly + invalid + failed;
  }

  private mount(): void {
    const { state, page } = this;
    state.release();
    wear(state);
    state.subscribe((changed) => {
      if (changed.has("theme")) wear(state);
      if (changed.has("result")) this.other();
      if (changed.has("at") && state.get("at") !== "") this.slots?.go(state.get("at"));
    });
    this.slots?.stop();
    const index = Math.min(Math.max(0, Math.floor(Number(state.get("result")) || 0)), page.results.length - 1);
    const result = page.results[index];
    if (result === undefined) {
      this.shell.replaceChildren(h("main", { id: "main" }, h("p", { class: "empty" }, "No run has ended yet.")));
      return;
    }
    const look = looks(page);
    const figures = new Map(page.figures.map((figure) => [figure.key, figure]));
    const context: Context = {
      page,
      result,
      index,
      state,
      dark: () => isDark(state),
      look: (system) => look(system, isDark(state)),
      figure: (key) => figures.get(key) ?? { key, label: key, unit: "count", better: null, group: "counts", about: "" },
      evidence: (cell) => {
        state.set("run", "");
        state.set("cell", String(cell));
      },
    };
    document.title = `${clean(result.title, 100)} · pubmark`;
    this.slots = new Slots(SECTIONS, context);
    this.shell.replaceChildren(this.skip(), this.head(context), this.slots.nav, h("main", { id: "main", tabindex: "-1" }, this.slots.elements), this.foot(context));
    this.slots.start();
    this.evidence.follow(context);
  }

  /** Another of several results: what belonged to the old one is forgotten. */
  private other(): void {
    for (const key of ["cell", "run", "runs.page", "cells.page"]) this.state.set(key, "");
    this.again();
  }

  private skip(): HTMLElement {
    return h("button", { type: "button", class: "skip", onclick: () => document.getElementById("main")?.focus() }, "Skip to the answer");
  }

  private head({ page, result, state }: Context): HTMLElement {
    const themes = ["auto", "light", "dark"].map((value) => ({ value, label: value }));
    const results = page.results.map((one, index) => ({ value: String(index), label: clean(one.name, 60) }));
    return h(
      "header",
      { class: "head" },
      h(
        "div",
        { class: "title" },
        h("p", { class: "brand" }, h("b", null, "pubmark"), h("span", null, clean(result.name, 80)), h("span", null, many(this.runs(), "run")), page.results.length > 1 ? h("span", null, `${page.results.length} results side by side`) : null),
        h("h1", null, clean(result.title, 200)),
      ),
      h(
        "div",
        { class: "tools" },
        results.length < 2 ? null : select("Shown", "result", results, state),
        segments("Theme", "theme", themes, state),
      ),
    );
  }

  private foot({ page }: Context): HTMLElement {
    return h("footer", { class: "foot" }, `Made by pubmark ${clean(page.pubmark, 40)} from the records in the results folder. Latency counts from when a message was due, less the generator delay, unless it says otherwise. Figures are medians over the runs, intervals are 95 %. This page loads nothing from anywhere.`);
  }
}
