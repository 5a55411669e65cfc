import { follow, refill, select } from "../charts/controls";
import { label } from "../charts/clean";
import { present } from "../charts/slicing";
import type { Context } from "../context";
import { link } from "../controls";
import { fill, h, type Child } from "../dom";
import { EXAMPLES, fits, parseBound, reasonWords, type Constraint, type Fit } from "../fit";
import type { Axis, Cell, Figure } from "../model";
import { plainTable } from "../table";
import { dot } from "../words";

/** Most constraints at a time. */
const CONSTRAINTS_MAX = 3;
/** Axes with more values than this cannot be chosen from. */
const VALUES_MAX = 12;

/** A constraint as it stands in the form. */
interface Row {
  figure: Figure | null;
  isBelow: boolean;
  typed: string;
  /** Null where nothing was typed, or nothing that is a bound. */
  bound: number | null;
}

/** Asks for bounds of figures, and shows which systems meet all of them; null where
 *  nothing was measured. */
export function fitForm(context: Context): HTMLElement | null {
  const cells = competing(context);
  if (!cells.some((cell) => Object.keys(cell.figures).length > 0)) return null;
  const controls = h("div", { class: "fit-form" });
  const found = h("div", { class: "fit-found" });
  const element = h("div", { class: "fit", role: "group", "aria-label": "Which systems fit?" }, controls, found);
  const redraw = () => {
    const rows = Array.from({ length: CONSTRAINTS_MAX }, (_, at) => row(context, at + 1));
    const set = rows.flatMap(({ figure, isBelow, bound }): Constraint[] => (figure === null || bound === null ? [] : [{ figure, isBelow, bound }]));
    // The next row appears when the one before it is filled in.
    const shown = rows.filter((one, at) => one.figure !== null || at === 0 || rows[at - 1]!.figure !== null);
    refill(controls, shown.map((one) => rowControls(context, cells, one, rows.indexOf(one) + 1)), set.length > 0 && axisControls(context, cells));
    fill(found, set.length === 0 ? h("p", { class: "small" }, "Choose a figure and type a bound to see which systems meet it.") : answer(context, set));
  };
  redraw();
  follow(context, element, ["fit."], redraw);
  return element;
}

function competing(context: Context): Cell[] {
  const names = new Set(context.result.systems.filter(({ kind }) => kind !== "reference").map(({ name }) => name));
  return context.result.cells.filter((cell) => names.has(cell.system) && cell.status !== "skipped");
}

function row({ state, page }: Context, at: number): Row {
  const figure = page.figures.find(({ key }) => key === state.get(`fit.${at}.figure`)) ?? null;
  const asked = state.get(`fit.${at}.is`);
  const typed = state.get(`fit.${at}.bound`);
  const isBelow = asked === "" ? figure?.better !== "higher" : asked !== "above";
  return { figure, isBelow, typed, bound: figure === null ? null : parseBound(typed, figure.unit) };
}

function rowControls(context: Context, cells: Cell[], { figure, isBelow, typed, bound }: Row, at: number): HTMLElement {
  const figures = context.page.figures.filter(({ key }) => key === figure?.key || cells.some((cell) => cell.figures[key]));
  const options = figures.map(({ key, label }): [string, string] => [key, label]);
  const isWrong = typed !== "" && bound === null;
  const box = figure && h("input", {
    type: "text", value: typed, maxlength: 24, placeholder: EXAMPLES[figure.unit], "data-control": `fit.${at}.bound`, "aria-label": `Bound ${at}, such as ${EXAMPLES[figure.unit]}`,
    "aria-invalid": isWrong ? "true" : null, onchange: () => box && context.state.set(`fit.${at}.bound`, box.value.trim()),
  });
  const clear = () => {
    for (const key of ["bound", "is", "figure"]) context.state.set(`fit.${at}.${key}`, "");
  };
  return h(
    "div",
    { class: "controls", role: "group", "aria-label": `Constraint ${at}` },
    select(context, `fit.${at}.figure`, at === 1 ? "figure" : "and", [["", "choose a figure"], ...options], figure?.key ?? ""),
    figure && select(context, `fit.${at}.is`, "is", [["below", "< below"], ["above", "> above"]], isBelow ? "below" : "above"),
    box && h("span", { class: "pick" }, box),
    figure && isWrong && h("span", { role: "alert" }, `type a bound such as ${EXAMPLES[figure.unit]}`),
    figure && link("Remove", clear, { "aria-label": `Remove constraint ${at}` }),
  );
}

/** The axes of which a value can be chosen. */
function axesOf(context: Context, cells: Cell[]): { axis: Axis; labels: string[] }[] {
  return context.result.axes
    .filter(({ name }) => name !== "system")
    .map((axis) => ({ axis, labels: present(axis, cells) }))
    .filter(({ labels }) => labels.length > 1 && labels.length <= VALUES_MAX);
}

/** The chosen value of an axis, by label; empty for all. */
function chosen({ state }: Context, { name, values }: Axis): string {
  const asked = state.get(`fit.at.${name}`);
  return values.some(({ label }) => label === asked) ? asked : "";
}

function axisControls(context: Context, cells: Cell[]): Child {
  const axes = axesOf(context, cells);
  return axes.length > 0 && h(
    "div",
    { class: "controls", role: "group", "aria-label": "At which points" },
    axes.map(({ axis, labels }) => select(context, `fit.at.${axis.name}`, axis.label, [["", "all"], ...labels.map((value): [string, string] => [value, value])], chosen(context, axis))),
  );
}

function answer(context: Context, constraints: Constraint[]): Child {
  const found = fits(context.result, constraints, (axis) => chosen(context, axis));
  if (found.length === 0) return h("p", { class: "small" }, "The study has no such point.");
  const first = (fit: Fit): Child => fit.first !== null && [reasonWords(context.result, fit), " ", link("Evidence", () => context.evidence(fit.first!.cell), { "aria-label": `Evidence: ${label(fit.system)}` })];
  const rows = found.map((fit): Child[] => [
    h("span", { class: "system" }, dot(context.page, fit.system), label(fit.system, 60)),
    `${fit.yes} of ${fit.yes + fit.no + fit.open}`, String(fit.no), String(fit.open), first(fit),
  ]);
  const number = (label: string) => ({ label, numeric: true as const });
  return [
    plainTable("Systems that meet the constraints", ["system", number("meets all"), number("does not"), number("open"), "first reason"], rows),
    h("p", { class: "small" }, "Points are counted. A system meets a bound with its whole 95 % interval, and does not meet it where the whole interval is on the other side. Everything else is open."),
  ];
}
