import { SHARED } from "../charts/chart";
import { label } from "../charts/clean";
import { follow, refill, select } from "../charts/controls";
import { data, downloads } from "../charts/figure";
import { cardOf } from "../charts/mapcard";
import { mapPicture } from "../charts/mappicture";
import { glyph } from "../charts/mark";
import { present } from "../charts/slicing";
import type { Entry, Table } from "../charts/table";
import { theme as themeOf } from "../charts/theme";
import { CAPACITY, mapAxes, marginShort, marginWords, publishedBest, square, squareWords, type Square } from "../charts/winners";
import type { Context, Section } from "../context";
import { fill, h, type Child } from "../dom";
import type { Axis, Cell, Figure, Point } from "../model";
import { NOT_COMPARABLE, UNRELIABLE } from "../words";
import { at } from "./shared";
import { cut, cutWords, sliceBar } from "./slice";

/** Where which system is best: the regions of two axes. */
export const map: Section = {
  id: "map",
  title: "Map of winners",
  has(context) {
    const { points, systems } = context.result;
    return points.length > 1 && systems.filter(({ kind }) => kind !== "reference").length > 1 && figures(context).length > 0;
  },
  render(context) {
    return h("div", null, sliceBar(context, () => shown(context).cut), figure(context));
  },
};

/** The maps as they are at the moment: one, or one for each value of an axis. */
export interface MapView {
  x: Axis | null;
  y: Axis | null;
  by: Axis | null;
  panels: MapPanel[];
  figure: Figure;
}

/** Squares by row and column. */
export interface MapPanel {
  /** The value of the axis that tells the maps apart; empty where there is one. */
  name: string;
  columns: string[];
  rows: string[];
  squares: Square[][];
}

/** Most maps side by side. */
const PANELS_MAX = 6;
/** The reader wants one map. */
const ONE = "-";

/** Figures by which somebody is ranked somewhere. */
function figures(context: Context): Figure[] {
  const keys = new Set(context.result.points.flatMap(({ ranks }) => Object.keys(ranks)));
  const own = context.page.figures.filter(({ key }) => keys.has(key));
  return context.result.points.some(({ capacity }) => capacity !== undefined) ? [...own, CAPACITY] : own;
}

function chosenFigure(context: Context): Figure {
  const all = figures(context);
  return all.find(({ key }) => key === context.state.get("figure"))
    ?? all.find(({ key }) => key === "latency_p50_ns") ?? all[0]!;
}

function shown(context: Context) {
  const { result, state } = context;
  const figure = chosenFigure(context);
  const rankOf = (point: Point | undefined) => (figure === CAPACITY ? point?.capacity : point?.ranks[figure.key]);
  const use = (cell: Cell) => (rankOf(result.points[cell.point]) ? 1 : 0);
  const others = result.axes.map(({ name }) => name).filter((name) => name !== "part");
  const within = cut(context, result.cells, others, use).cells;
  const axes = mapAxes(within, result.axes, state.get("mapx"), state.get("mapy"));
  const asked = state.get("mapby");
  // Side by side are the values of an axis at which somebody is ranked.
  const facets = axes.all
    .filter((axis) => axis !== axes.x && axis !== axes.y)
    .map((axis) => ({ axis, labels: present(axis, within.filter((cell) => use(cell) > 0)) }))
    .filter(({ labels }) => labels.length > 1 && labels.length <= PANELS_MAX);
  const by = asked === ONE ? undefined : (facets.find(({ axis }) => axis.name === asked) ?? facets[0]);
  const used = [axes.x, axes.y, by?.axis].flatMap((axis) => (axis ? [axis.name] : []));
  return { figure, axes, facets, by, cut: cut(context, result.cells, used, use) };
}

type Shown = MapView & { words: string; all: Axis[]; facets: Axis[] };

function view(context: Context): Shown {
  const { figure, axes: { x, y, all }, facets, by, cut: { slices, cells } } = shown(context);
  const has = (axis: Axis | null, text: string, cell: Cell) =>
    axis === null || axis.values.some(({ value, label }) => label === text && cell.axes[axis.name] === value);
  const panels = (by?.labels ?? [""]).map((name): MapPanel => {
    const own = by ? cells.filter((cell) => has(by.axis, name, cell)) : cells;
    const columns = x ? present(x, own) : [""];
    // The largest stands at the top, as on the axis of a chart.
    const rows = y ? present(y, own).reverse() : [""];
    const squares = rows.map((row) => columns.map((column): Square => {
      const cell = own.find((cell) => has(x, column, cell) && has(y, row, cell));
      return cell ? square(context.result, cell.point, figure) : { kind: "empty", point: null, systems: [], margin: null, why: null };
    }));
    return { name, columns, rows, squares };
  });
  return { x, y, by: by?.axis ?? null, all, facets: facets.map(({ axis }) => axis), panels, figure, words: cutWords(slices) };
}

/** All squares of all maps. */
function squaresOf({ panels }: MapView): Square[] {
  return panels.flatMap(({ squares }) => squares.flat());
}

function figure(context: Context): HTMLElement {
  const controls = h("div", { class: "controls" });
  const box = h("div", { class: "maps" });
  const legend = h("div", { class: "legend-box" });
  const caption = h("figcaption");
  const dialog = h("dialog", { class: "card", "aria-label": "Point of the map" });
  const title = "Who is best where";
  const table = (): Table => numbers(context, view(context));
  const picture = () => {
    const theme = themeOf(context, false);
    const it = view(context);
    const systems = [...new Set(squaresOf(it).flatMap(({ systems }) => systems))];
    return { ...mapPicture(it, theme), systems, theme };
  };
  const numbersBelow = data(title, table);
  const figure = h(
    "figure",
    { class: "chart map", "data-chart": "map", "data-drawn": "1" },
    h("div", { class: "chart-head" }, h("h3", null, title), downloads(context, "map", title, picture, table)),
    controls, legend, box, caption, numbersBelow.element, dialog,
  );
  const redraw = () => {
    const it = view(context);
    refill(controls, ...choices(context, it));
    fill(legend, keys(context, it));
    refill(box, it.panels.map((panel) => grid(context, it, panel, dialog)));
    fill(caption, `${at(it.words)}By ${it.figure.label}: ${it.figure.better === "higher" ? "more" : "less"} is better. Each square names the winner, shown to be better than all others within the repeats, and how far it is ahead of the second. A tie is of systems that are shown to differ by less than what matters to the study (5 % unless it says otherwise). Where it is open, the candidates are named: the best one is among them. Press a square for all systems there.${publishedWords(context, it)}`);
    numbersBelow.renew();
  };
  redraw();
  follow(context, figure, [...SHARED, "mapx", "mapy", "mapby"], redraw);
  return figure;
}

/** Where published figures are shown beside the found ones, and of which machine they are. */
function publishedWords(context: Context, it: MapView): string {
  const { result } = context;
  const has = squaresOf(it).some(({ point }) => point !== null && publishedBest(result, point, it.figure) !== null);
  return has ? ` Published: the best by the published figures${result.reference?.source ? ` (${label(result.reference.source, 120)})` : ""}, which are of another machine.` : "";
}

function choices(context: Context, { x, y, by, all, facets, figure }: Shown): Child[] {
  const axes = (key: string, name: string, own: Axis | null, other: Axis | null) =>
    own && all.length > 2 && select(context, key, name, all.filter((axis) => axis !== other).map(({ name, label }) => [name, label]), own.name);
  return [
    select(context, "figure", "best by", figures(context).map(({ key, label }) => [key, label]), figure.key),
    axes("mapx", "across", x, y),
    axes("mapy", "up", y, x),
    facets.length > 0 && select(context, "mapby", "side by side", [[ONE, "one map"], ...facets.map(({ name, label }): [string, string] => [name, label])], by?.name ?? ONE),
  ];
}

const KINDS: Partial<Record<Square["kind"], string>> = {
  tie: "tie", alone: "alone", open: "open: any of these may be the best", unranked: `${NOT_COMPARABLE}: shares delivered differ`, invalid: UNRELIABLE, failed: "failed", missing: "not run yet", skipped: "skipped", none: "no such figure", empty: "not in the study",
};

/** Who and what is on the map. */
function keys(context: Context, it: MapView): HTMLElement {
  const all = squaresOf(it);
  const systems = [...new Set(all.flatMap(({ kind, systems }) => (kind === "winner" || kind === "tie" ? systems : [])))];
  const kinds = (Object.keys(KINDS) as Square["kind"][]).filter((kind) => all.some((square) => square.kind === kind));
  return h(
    "ul",
    { class: "legend", "aria-label": "Legend" },
    systems.map((system) => h("li", { class: "key" }, glyph(context.look(system)), label(system))),
    kinds.map((kind) => h("li", { class: "key" }, h("span", { class: `square-key ${kind}`, "aria-hidden": "true" }), KINDS[kind])),
  );
}

function grid(context: Context, it: MapView, { name: at, columns, rows, squares }: MapPanel, dialog: HTMLDialogElement): HTMLElement {
  const { x, y, by } = it;
  const where = by ? `${label(by.label)} ${label(at)}` : "";
  const corner = [x && `${label(x.label, 20)} →`, x && y && h("br"), y && `${label(y.label, 20)} ↑`];
  const head = h("tr", null, y && h("th", { scope: "col", class: "corner" }, corner), columns.map((column) => h("th", { scope: "col" }, label(column, 16))));
  const body = rows.map((row, i) =>
    h(
      "tr",
      null,
      y && h("th", { scope: "row" }, label(row, 16)),
      columns.map((column, j) => h("td", null, button(context, it, squares[i]![j]!, [where, y && `${y.label} ${row}`, x && `${x.label} ${column}`].filter(Boolean).join(", "), dialog))),
    ));
  const axes = h("span", { class: "unseen" }, `${x ? label(x.label) : "All points"}${y ? ` across, ${label(y.label)} up` : ""}`);
  const name = h("caption", null, where, axes);
  const table = h("table", { class: "map-grid" }, name, x && h("thead", null, head), h("tbody", null, body));
  // Columns of equal width, and none too narrow for a name: then the box scrolls.
  const longest = Math.max(...context.result.systems.filter((system) => system.kind !== "reference").map((system) => system.name.length), 8);
  table.style.minWidth = `${(y ? 6 : 0) + Math.min(1.9 + 0.45 * longest, 8) * columns.length}rem`;
  return h("div", { class: "map-box", tabindex: "0", role: "region", "aria-label": `Squares of the map${where ? `, ${where}` : ""}` }, table);
}

const SHORT: Partial<Record<Square["kind"], string>> = {
  alone: "alone", open: "open", unranked: NOT_COMPARABLE, invalid: UNRELIABLE, failed: "failed", missing: "–", skipped: "skipped", none: "no figure", empty: "",
};

function button(context: Context, it: MapView, square: Square, where: string, dialog: HTMLDialogElement): Child {
  const { kind, systems, margin, point } = square;
  if (point === null) return h("span", { class: "square empty" }, h("span", { class: "unseen" }, "not in the study"));
  const looks = systems.map((system) => context.look(system));
  const theirs = publishedBest(context.result, point, it.figure);
  const name = systems.map((system) => label(system, 18));
  const element = h(
    "button",
    {
      type: "button", class: `square ${kind}`, "data-control": `square.${point}`,
      onclick: () => {
        fill(dialog, cardOf(context, point, it.figure, () => dialog.close()));
        dialog.showModal();
      },
    },
    h("span", { class: "unseen" }, `${where ? `${label(where, 80)}: ` : ""}${label(squareWords(square), 200)}${theirs === null ? "" : `; published: ${label(theirs, 40)}`}`),
    h("span", { class: "seen", "aria-hidden": "true" }, kind === "winner"
      ? [h("span", { class: "who" }, glyph(looks[0]!), name[0]), margin !== null && h("span", { class: "margin" }, marginShort(margin))]
      : kind === "tie"
        ? [h("span", { class: "who" }, name.slice(0, 2).join(" = ")), h("span", { class: "margin" }, name.length > 2 ? `= ${name.length - 2} more` : "tie")]
        : kind === "open" && name.length > 0
          ? [h("span", { class: "who" }, name.slice(0, 2).join(" or ")), h("span", { class: "margin" }, name.length > 2 ? `or ${name.length - 2} more` : "open")]
          : h("span", { class: "who" }, SHORT[kind]),
    theirs !== null && h("span", { class: "margin published" }, `published: ${label(theirs, 18)}`)),
  );
  if (kind === "winner") element.style.setProperty("--own", looks[0]!.colour);
  if (kind === "tie") looks.slice(0, 4).forEach(({ colour }, i) => element.style.setProperty(`--tie-${i}`, colour));
  if (kind === "tie") element.dataset["of"] = String(Math.min(looks.length, 4));
  return element;
}

function numbers({ result }: Context, it: MapView): Table {
  const { x, y, by, panels, figure } = it;
  const theirs = ({ point }: Square) => (point === null ? null : publishedBest(result, point, figure));
  const isPublished = squaresOf(it).some((square) => theirs(square) !== null);
  const columns = [...(by ? [by.label] : []), ...(y ? [y.label] : []), x?.label ?? "", `best by ${figure.label}`, "systems", "ahead of the second", ...(isPublished ? ["published best"] : [])];
  const rows = panels.flatMap(({ name, columns, rows, squares }) => rows.flatMap((row, i) => columns.map((column, j): Entry[] => {
    const square = squares[i]![j]!;
    const { kind, margin } = square;
    const where = [...(by ? [label(name)] : []), ...(y ? [label(row)] : []), label(column)];
    const outcome = kind === "winner" || kind === "tie" || kind === "open" ? kind : squareWords(square);
    return [...where, outcome, square.systems.map((system) => label(system)).join(", "), { text: margin === null ? "–" : marginWords(margin), value: margin }, ...(isPublished ? [label(theirs(square) ?? "–")] : [])];
  })));
  return { columns, rows };
}
