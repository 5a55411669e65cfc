import { quotable, type Context } from "../context";
import { h } from "../dom";
import { NONE, withInterval } from "../format";
import type { Capacity, Figure, Point, Rank } from "../model";
import { standingWord } from "../words";
import { label } from "./clean";
import { answer } from "./knees";
import { glyph } from "./mark";
import { absence, runs, verdict } from "./tip";
import { CAPACITY, moreWords } from "./winners";

/** All systems at a point of the map, the best first, each with its evidence. */
export function cardOf(context: Context, point: number, figure: Figure, close: () => void): HTMLElement {
  const at = context.result.points[point]!;
  const rank = figure === CAPACITY ? at.capacity : at.ranks[figure.key];
  return h(
    "div",
    { class: "knees" },
    h("div", { class: "chart-head" }, h("h3", null, label(at.label, 120)), h("button", { type: "button", class: "toggle", onclick: close }, "Close")),
    rank && h("p", null, rankWords(rank)),
    figure === CAPACITY ? searches(context, at) : measured(context, at, figure, close),
  );
}

function rankWords({ kind, systems, why, repeats_more: more }: Rank): string {
  if (kind === "unranked" || kind === "alone") return `${kind === "alone" ? "Alone" : "Not comparable"}${why ? `: ${label(why, 300)}` : ""}`;
  if (kind === "open") return `Open: ${label(systems.join(" or "), 200)}${moreWords(more)}${why ? ` (${label(why, 300)})` : ""}`;
  return `${kind === "tie" ? "Tie" : "Best"}: ${label(systems.join(", "), 200)}`;
}

function name(context: Context, system: string): HTMLElement {
  const isReference = context.result.systems.find(({ name }) => name === system)?.kind === "reference";
  return h("th", { scope: "row" }, glyph(context.look(system)), " ", label(system), isReference && h("small", null, " not ranked"));
}

function table(caption: string, heads: string[], rows: HTMLElement[]): HTMLElement {
  return h(
    "table",
    null,
    h("caption", null, caption),
    h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", null, rows),
  );
}

/** What the runs of each system say. */
function measured(context: Context, at: Point, figure: Figure, close: () => void): HTMLElement {
  const { result } = context;
  const value = (index: number) => result.cells[index]!.figures[figure.key]?.[0] ?? null;
  const worth = (index: number) => {
    const found = value(index);
    if (found === null) return Infinity;
    return (figure.better === "higher" ? -found : found) + (quotable(result.cells[index]!, figure.key) ? 0 : 1e18);
  };
  const cells = [...at.cells].sort((a, b) => worth(a) - worth(b) || a - b);
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
      name(context, cell.system),
      h("td", { class: "number" }, estimate ? withInterval(estimate, figure.unit) : NONE),
      h("td", null, estimate ? verdict(cell) : absence(cell)),
      h("td", { class: "number" }, runs(cell)),
      h("td", null, h("button", { type: "button", class: "toggle", "aria-label": `Evidence of ${label(cell.system)}`, onclick: open }, "Evidence")),
    );
  });
  return table(`${figure.label}, with the 95 % interval`, ["system", figure.label, "verdict", "runs", "evidence"], rows);
}

/** What the search of each system has found; its curve stands under Capacity. */
function searches(context: Context, at: Point): HTMLElement {
  const least = ({ lo }: Capacity) => lo ?? -1;
  const found = (at.searches ?? []).map((index) => context.result.capacities[index]!).sort((a, b) => least(b) - least(a));
  const rows = found.map((search) => h(
    "tr",
    null,
    name(context, search.system),
    h("td", { class: "number" }, answer(search)),
    h("td", null, search.limited_by === null ? NONE : label(search.limited_by, 40)),
    h("td", null, label(standingWord(search.standing), 20)),
    h("td", { class: "number" }, String(search.curve.reduce((steps, { counted }) => steps + counted, 0))),
  ));
  return table(`The highest load at which ${label(found[0]?.until ?? "the objective", 120)} holds; each search is drawn under Capacity`, ["system", "holds up to", "limited by", "verdict", "steps"], rows);
}
