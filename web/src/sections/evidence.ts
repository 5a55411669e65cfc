/** The dialog in which a cell or a run shows what its figures rest on. */
import type { Context } from "../context";
import { link, unique } from "../controls";
import { h } from "../dom";
import { clean } from "../text";
import { cellEvidence } from "./evidence-cell";
import { runEvidence } from "./evidence-run";

/** The element in the list that opened the dialog, where the focus goes back to. */
const opener = (kind: "cell" | "run", index: string): HTMLElement | null => document.querySelector(`main [data-${kind}="${CSS.escape(index)}"]`);

/** An index out of the address, which anybody may have typed. */
function indexOf(text: string, length: number): number | null {
  const index = /^\d{1,7}$/.test(text) ? Number(text) : -1;
  return index >= 0 && index < length ? index : null;
}

/** One dialog, which follows the state's `cell` and `run`. */
export class Evidence {
  readonly element: HTMLDialogElement;
  private readonly title = h("h2", { id: unique("evidence"), tabindex: "-1" });
  private readonly body = h("div", { class: "evidence-body" });
  private context: Context | null = null;
  private shown = "";
  /** What was shown before, so that a page that is drawn again keeps its place. */
  private last = "";
  /** When the run that is shown began. */
  private started = "";

  constructor() {
    const close = h("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => this.element.close() }, "✕");
    this.element = h(
      "dialog",
      { class: "evidence", "aria-labelledby": this.title.id, onclose: () => this.closed(), onclick: ((event: MouseEvent) => this.outside(event)) as EventListener },
      h("header", null, this.title, close),
      this.body,
    );
  }

  /** Shows what the state asks for, of another result or page too. */
  follow(context: Context): void {
    this.context = context;
    // A run that has ended does not change; a cell gains runs on a live page.
    if (this.shown !== this.runShown(context)) this.shown = "";
    context.state.subscribe((changed) => {
      if (changed.has("cell") || changed.has("run")) this.draw();
    });
    this.draw();
  }

  /** What is shown, where the context has the same run at the same place. */
  private runShown({ result, state }: Context): string | null {
    const run = indexOf(state.get("run"), result.records.length);
    return run !== null && result.records[run]!.started === this.started ? `run ${run}` : null;
  }

  private draw(): void {
    const context = this.context!;
    const { result, state } = context;
    const run = indexOf(state.get("run"), result.records.length);
    const cell = indexOf(state.get("cell"), result.cells.length);
    const wanted = run !== null ? `run ${run}` : cell !== null ? `cell ${cell}` : "";
    if (wanted === this.shown) return;
    this.shown = wanted;
    if (wanted === "") {
      if (this.element.open) this.element.close();
      return;
    }
    const top = this.element.scrollTop;
    const again = this.element.open;
    if (run !== null) {
      const entry = result.records[run]!;
      this.started = entry.started;
      this.title.replaceChildren(`${clean(result.cells[entry.cell]?.label ?? "Run", 200)}, run ${entry.repeat}`);
      const back = link("← all runs of this cell", () => this.toCell(entry.cell));
      this.body.replaceChildren(h("p", { class: "crumbs" }, back, this.neighbours(run)), runEvidence(context, run));
    } else {
      this.title.replaceChildren(clean(result.cells[cell!]!.label, 200));
      this.body.replaceChildren(cellEvidence(context, cell!));
    }
    if (!again) this.element.showModal();
    this.element.scrollTop = again && this.last === wanted ? top : 0;
    this.last = wanted;
    // What had the focus may have gone with the old content.
    if (!again || !this.element.contains(document.activeElement)) this.title.focus({ preventScroll: true });
  }

  private toCell(cell: number): void {
    this.context!.state.set("cell", String(cell));
    this.context!.state.set("run", "");
  }

  /** The runs before and after of the same cell. */
  private neighbours(run: number): HTMLElement {
    const { result, state } = this.context!;
    const cell = result.records[run]!.cell;
    const all = result.records.map((entry, index) => ({ entry, index })).filter(({ entry }) => entry.cell === cell).map(({ index }) => index);
    const at = all.indexOf(run);
    const button = (text: string, index: number | undefined): HTMLElement =>
      h("button", { type: "button", disabled: index === undefined, onclick: () => index !== undefined && state.set("run", String(index)) }, text);
    return h("span", { class: "neighbours" }, button("Previous run", all[at - 1]), button("Next run", all[at + 1]));
  }

  private outside(event: MouseEvent): void {
    if (event.target !== this.element) return;
    const box = this.element.getBoundingClientRect();
    const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
    if (!inside) this.element.close();
  }

  private closed(): void {
    const state = this.context!.state;
    const [run, cell] = [state.get("run"), state.get("cell")];
    this.shown = "";
    this.last = "";
    this.body.replaceChildren();
    state.set("run", "");
    state.set("cell", "");
    // The browser gives the focus back unless the opener has been drawn anew.
    const active = document.activeElement;
    if (active === document.body || active === null || this.element.contains(active)) {
      (opener("run", run) ?? opener("cell", cell))?.focus();
    }
  }
}
