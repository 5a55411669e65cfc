import { quotable, type Context } from "../context";
import { h } from "../dom";
import { NONE, withInterval } from "../format";
import type { Figure } from "../model";
import { label } from "./clean";
import { glyph } from "./mark";
import { absence, runs, verdict } from "./tip";
import { CAPACITY, moreWords } from "./winners";

/** All systems at a point of the map, the best first, each with its evidence. */
export function cardOf(context: Context, point: number, figure: Figure, close: () => void): HTMLElement {
  const { result } = context;
  const at = result.points[point]!;
  const value = (index: number) => result.cells[index]!.figures[figure.key]?.[0] ?? null;
  const worth = (index: number) => {
    const found = value(index);
    if (found === null) return Infinity;
    return (figure.better === "higher" ? -found : found) + (quotable(result.cells[index]!, figure.key) ? 0 : 1e18);
  };
  const cells = [...at.cells].sort((a, b) => worth(a) - worth(b) || a - b);
  const isReference = (system: string) => result.systems.find(({ name }) => name === system)?.kind === "reference";
  const rank = figure === CAPACITY ? at.capacity : at.ranks[figure.key];
  const rows = cells.map((index) => {
    const cell = result.cells[index]!;
    const estimate = cell.figures[figure.key];
    const open = () => {
      close();
      context.evidence(index);
    };
    return h(
      "tr",
      null,
      h("th", { scope: "row" }, glyph(context.look(cell.system)), " ", label(cell.system), isReference(cell.system) && h("small", null, " not ranked")),
      h("td", { class: "number" }, estimate ? withInterval(estimate, figure.unit) : NONE),
      h("td", null, estimate ? verdict(cell) : absence(cell)),
      h("td", { class: "number" }, runs(cell)),
      h("td", null, h("button", { type: "button", class: "toggle", "aria-label": `Evidence of ${label(cell.system)}`, onclick: open }, "Evidence")),
    );
  });
  return h(
    "div",
    { class: "knees" },
    h("div", { class: "chart-head" }, h("h3", null, label(at.label, 120)), h("button", { type: "button", class: "toggle", onclick: close }, "Close")),
    rank && h("p", null, rank.kind === "undecided" || rank.kind === "unranked" ? `${rank.kind === "undecided" ? "Undecided" : "Unranked"}${rank.why ? `: ${label(rank.why, 300)}` : ""}${moreWords(rank.repeats_more)}` : rank.kind === "tie" ? `Tie: ${label(rank.systems.join(", "), 200)}` : `Best: ${label(rank.systems.join(", "), 200)}`),
    // What searches have found stands in a section of its own, with the curves.
    figure === CAPACITY ? h("p", null, "Each search is shown under Capacity.") : h(
      "table",
      null,
      h("caption", null, `${figure.label}, with the 95 % interval`),
      h("thead", null, h("tr", null, ["system", figure.label, "verdict", "runs", "evidence"].map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", null, rows),
    ),
  );
}
