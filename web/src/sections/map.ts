import { SHARED } from "../charts/chart";
import { label } from "../charts/clean";
import { follow, refill, select } from "../charts/controls";
import { data, downloads } from "../charts/figure";
import { cardOf } from "../charts/mapcard";
import { mapPicture } from "../charts/mappicture";
import { glyph } from "../charts/mark";
import { present } from "../charts/slicing";
import type { Table } from "../charts/table";
import { theme as themeOf } from "../charts/theme";
import { mapAxes, marginShort, marginWords, square, squareWords, type Square } from "../charts/winners";
import type { Context, Section } from "../context";
import { fill, h, type Child } from "../dom";
import type { Axis, Cell, Figure } from "../model";
import { at } from "./shared";
import { cut, cutWords, sliceBar } from "./slice";

/** Where which system is best: the regions of two axes. */
export const map: Section = {
  id: "map",
  title: "Map of winners",
  render(context) {
    const { points, systems } = context.result;
    const competing = systems.filter(({ kind }) => kind !== "reference");
    if (points.length < 2 || competing.length < 2 || figures(context).length === 0) return null;
    return h("div", null, sliceBar(context, () => shown(context).cut), figure(context));
  },
};

/** A map as it is at the moment: squares by row and column. */
export interface MapView {
  x: Axis | null;
  y: Axis | null;
  columns: string[];
  rows: string[];
  squares: Square[][];
  figure: Figure;
}

/** Figures by which somebody is ranked somewhere. */
function figures(context: Context): Figure[] {
  const keys = new Set(context.result.points.flatMap(({ ranks }) => Object.keys(ranks)));
  return context.page.figures.filter(({ key }) => keys.has(key));
}

function chosenFigure(context: Context): Figure {
  const all = figures(context);
  return all.find(({ key }) => key === context.state.get("figure"))
    ?? all.find(({ key }) => key === "latency_p50_ns") ?? all[0]!;
}

function shown(context: Context) {
  const { result, state } = context;
  const figure = chosenFigure(context);
  const use = (cell: Cell) => (result.points[cell.point]?.ranks[figure.key] ? 1 : 0);
  const others = result.axes.map(({ name }) => name).filter((name) => name !== "part");
  const within = cut(context, result.cells, others, use).cells;
  const axes = mapAxes(within, result.axes, state.get("mapx"), state.get("mapy"));
  const used = [axes.x, axes.y].flatMap((axis) => (axis ? [axis.name] : []));
  return { figure, axes, cut: cut(context, result.cells, used, use) };
}

function view(context: Context): MapView & { words: string; all: Axis[] } {
  const { figure, axes: { x, y, all }, cut: { slices, cells } } = shown(context);
  const columns = x ? present(x, cells) : [""];
  // The largest stands at the top, as on the axis of a chart.
  const rows = y ? present(y, cells).reverse() : [""];
  const has = (axis: Axis | null, text: string, cell: Cell) =>
    axis === null || axis.values.some(({ value, label }) => label === text && cell.axes[axis.name] === value);
  const squares = rows.map((row) => columns.map((column): Square => {
    const cell = cells.find((cell) => has(x, column, cell) && has(y, row, cell));
    return cell ? square(context.result, cell.point, figure) : { kind: "empty", point: null, systems: [], margin: null, why: null };
  }));
  return { x, y, all, columns, rows, squares, figure, words: cutWords(slices) };
}

function figure(context: Context): HTMLElement {
  const controls = h("div", { class: "controls" });
  const box = h("div", { class: "map-box", tabindex: "0", role: "region", "aria-label": "Squares of the map" });
  const legend = h("div", { class: "legend-box" });
  const caption = h("figcaption");
  const dialog = h("dialog", { class: "card", "aria-label": "Point of the map" });
  const title = "Who is best where";
  const table = (): Table => numbers(view(context));
  const picture = () => {
    const theme = themeOf(context, false);
    const it = view(context);
    const systems = [...new Set(it.squares.flat().flatMap(({ systems }) => systems))];
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
    refill(box, grid(context, it, dialog));
    fill(caption, `${at(it.words)}By ${it.figure.label}: ${it.figure.better === "higher" ? "more" : "less"} is better. Each square names the winner and how far it is ahead of the second. Where intervals overlap it is a tie, and all in it are named. Press a square for all systems there.`);
    numbersBelow.renew();
  };
  redraw();
  follow(context, figure, [...SHARED, "mapx", "mapy"], redraw);
  return figure;
}

function choices(context: Context, { x, y, all, figure }: ReturnType<typeof view>): Child[] {
  const axes = (key: string, name: string, own: Axis | null, other: Axis | null) =>
    own && all.length > 2 && select(context, key, name, all.filter((axis) => axis !== other).map(({ name, label }) => [name, label]), own.name);
  return [
    select(context, "figure", "best by", figures(context).map(({ key, label }) => [key, label]), figure.key),
    axes("mapx", "across", x, y),
    axes("mapy", "up", y, x),
  ];
}

const KINDS: Partial<Record<Square["kind"], string>> = {
  tie: "tie", undecided: "undecided", invalid: "no valid run", failed: "failed", missing: "not run yet", skipped: "skipped", none: "no such figure", empty: "not in the study",
};

/** Who and what is on the map. */
function keys(context: Context, { squares }: MapView): HTMLElement {
  const all = squares.flat();
  const systems = [...new Set(all.flatMap(({ kind, systems }) => (kind === "winner" || kind === "tie" ? systems : [])))];
  const kinds = (Object.keys(KINDS) as Square["kind"][]).filter((kind) => all.some((square) => square.kind === kind));
  return h(
    "ul",
    { class: "legend", "aria-label": "Legend" },
    systems.map((system) => h("li", { class: "key" }, glyph(context.look(system)), label(system))),
    kinds.map((kind) => h("li", { class: "key" }, h("span", { class: `square-key ${kind}`, "aria-hidden": "true" }), KINDS[kind])),
  );
}

function grid(context: Context, it: MapView, dialog: HTMLDialogElement): HTMLElement {
  const { x, y, columns, rows, squares } = it;
  const corner = [x && `${label(x.label, 20)} →`, x && y && h("br"), y && `${label(y.label, 20)} ↑`];
  const head = h("tr", null, y && h("th", { scope: "col", class: "corner" }, corner), columns.map((column) => h("th", { scope: "col" }, label(column, 16))));
  const body = rows.map((row, i) =>
    h(
      "tr",
      null,
      y && h("th", { scope: "row" }, label(row, 16)),
      columns.map((column, j) => h("td", null, button(context, it, squares[i]![j]!, [y && `${y.label} ${row}`, x && `${x.label} ${column}`].filter(Boolean).join(", "), dialog))),
    ));
  const name = h("caption", { class: "unseen" }, `${x ? label(x.label) : "All points"}${y ? ` across, ${label(y.label)} up` : ""}`);
  return h("table", { class: "map-grid" }, name, x && h("thead", null, head), h("tbody", null, body));
}

const SHORT: Partial<Record<Square["kind"], string>> = {
  undecided: "undecided", invalid: "invalid", failed: "failed", missing: "–", skipped: "skipped", none: "no figure", empty: "",
};

function button(context: Context, it: MapView, square: Square, where: string, dialog: HTMLDialogElement): Child {
  const { kind, systems, margin, point } = square;
  if (point === null) return h("span", { class: "square empty" }, h("span", { class: "unseen" }, "not in the study"));
  const looks = systems.map((system) => context.look(system));
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
    h("span", { class: "unseen" }, `${where ? `${label(where, 80)}: ` : ""}${label(squareWords(square), 200)}`),
    h("span", { class: "seen", "aria-hidden": "true" }, kind === "winner"
      ? [h("span", { class: "who" }, glyph(looks[0]!), name[0]), margin !== null && h("span", { class: "margin" }, marginShort(margin))]
      : kind === "tie"
        ? [h("span", { class: "who" }, name.slice(0, 2).join(" = ")), h("span", { class: "margin" }, name.length > 2 ? `= ${name.length - 2} more` : "tie")]
        : h("span", { class: "who" }, SHORT[kind])),
  );
  if (kind === "winner") element.style.setProperty("--own", looks[0]!.colour);
  if (kind === "tie") looks.slice(0, 4).forEach(({ colour }, i) => element.style.setProperty(`--tie-${i}`, colour));
  if (kind === "tie") element.dataset["of"] = String(Math.min(looks.length, 4));
  return element;
}

function numbers({ x, y, columns, rows, squares, figure }: MapView): Table {
  return {
    columns: [y?.label ?? "", x?.label ?? "", `best by ${figure.label}`, "systems", "ahead of the second"],
    rows: rows.flatMap((row, i) => columns.map((column, j) => {
      const square = squares[i]![j]!;
      const ahead = square.margin;
      return [label(row), label(column), square.kind === "winner" || square.kind === "tie" ? square.kind : squareWords(square), square.systems.map((system) => label(system)).join(", "), { text: ahead === null ? "–" : marginWords(ahead), value: ahead }];
    })),
  };
}
