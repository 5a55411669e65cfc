import type { Context } from "../context";
import { h } from "../dom";
import { NONE, quantity, withInterval } from "../format";
import type { Cell, Estimate, Unit } from "../model";
import { statusWord } from "../words";
import { label } from "./clean";

/** What is said of a point of a chart when it is pointed at. */
export interface Tip {
  title: string;
  rows: [string, string][];
}

/** As elements, never as HTML: names come from records. */
export function tipElement(tip: Tip): HTMLElement {
  return h(
    "div",
    { class: "tip" },
    h("div", { class: "tip-title" }, tip.title),
    h("table", null, tip.rows.map(([key, text]) => h("tr", null, h("th", { scope: "row" }, key), h("td", null, text)))),
  );
}

/** A cell's title, its figures, its verdict and how many runs stand behind it. */
export function cellTip(context: Context, index: number, figures: [string, Estimate | null | undefined, Unit][]): Tip {
  const cell = context.result.cells[index]!;
  const rows = figures.map(([name, estimate, unit]): [string, string] => [name, estimate ? withInterval(estimate, unit) : NONE]);
  return { title: label(cell.system), rows: [...rows, ["verdict", verdict(cell)], ["runs", runs(cell)]] };
}

/** The cell's standing, with the reasons against it. */
export function verdict(cell: Cell): string {
  const reasons = cell.reasons.map(({ reason, touches }) => `${label(reason)}${touches ? ` (${label(touches)})` : ""}`).join(", ");
  return reasons === "" ? statusWord(cell.status) : `${statusWord(cell.status)}: ${reasons}`;
}

/** `3`, or `2 of 3 ok`. */
export function runs(cell: Cell): string {
  if (cell.valid_runs === cell.runs) return String(cell.runs);
  return `${cell.valid_runs} of ${cell.runs} ${statusWord("valid")}`;
}

/** Why a cell has nothing to show, in words. */
export function absence(cell: Cell): string {
  switch (cell.status) {
    case "skipped": return `skipped${cell.skipped ? `: ${label(cell.skipped, 160)}` : ""}`;
    case "failed": return `failed${cell.error ? `: ${label(cell.error, 160)}` : ""}`;
    case "missing": return "not run yet";
    default:
      if (cell.reasons.some(({ reason }) => reason === "too-few-samples")) return "too few samples for it";
      return cell.unthrottled ? "no such figure: messages are sent as fast as they go" : "no such figure was measured";
  }
}

/** An entry of a table: what is shown, and the number that is exported. */
export function entry(value: number | null | undefined, unit: Unit): { text: string; value: number | null; unit: Unit } {
  return { unit, text: value === null || value === undefined ? NONE : quantity(value, unit), value: value ?? null };
}
