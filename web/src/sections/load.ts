import { tick } from "../charts/axes";
import { chart, type Drawing, type Frame } from "../charts/chart";
import { label } from "../charts/clean";
import { isLog, logToggle, select } from "../charts/controls";
import { knee, SUSTAINED_RATIO, BOUND_MULTIPLE, type Knee } from "../charts/knee";
import { panels } from "../charts/lines";
import { absentList, across, estimate, hollowWords, isWide, linesOver, systemsOf, tableOver } from "../charts/over";
import { scale, spansDecades } from "../charts/scale";
import { amount, loadAxes, points, raisesLoad } from "../charts/slicing";
import { quotable, spoiled, value, type Context } from "../context";
import { h, type Child } from "../dom";
import { NONE, quantity } from "../format";
import type { Axis, Cell, Unit } from "../model";
import { at, chosenKey, floorToggle, KINDS, kindOf, kindToggle } from "./shared";
import { cut, cutWords, usefulness, type Cut } from "./slice";

const ID = "load";
const KEY = "latency";

/** Percentiles to choose from, by column. */
const FIGURES = ["latency_p50_ns", "latency_p99_ns", "latency_p999_ns", "latency_max_ns"];

/** The axis that charts over load take, and where they are cut; `last` is taken
 *  only where there is no other or where the reader chose it. */
export function loadCut(context: Context, cells: Cell[], use: (cell: Cell) => number, last: string | null = null): { axis: Axis; axes: Axis[]; cut: Cut } | null {
  // The part is chosen first: axes differ between parts.
  const part = context.result.axes.filter(({ name }) => name === "part");
  const within = part.length === 0 ? cells : cut(context, cells, context.result.axes.map(({ name }) => name).filter((name) => name !== "part"), use).cells;
  const axes = loadAxes(within, context.result.axes.filter(({ name }) => name !== "system" && name !== "part"));
  const axis = axes.find(({ name }) => name === context.state.get("x")) ?? axes.find(({ name }) => name !== last) ?? axes[0];
  return axis === undefined ? null : { axis, axes, cut: cut(context, cells, [axis.name], use) };
}

/** The choice of a horizontal axis, where there is one. */
export function axisSelect(context: Context, found: ReturnType<typeof loadCut>): Child {
  if (found === null || found.axes.length < 2) return null;
  return select(context, "x", "over", found.axes.map(({ name, label }) => [name, label]), found.axis.name);
}

/** Latency against load, with the load that each system sustains. */
export function loadChart(context: Context, cells: Cell[]): HTMLElement | null {
  const now = () => loadCut(context, cells, usefulness("latency_p50_ns", "latency_p99_ns"));
  if (context.result.axes.every((axis) => axis.name === "system" || points(axis, cells).length < 2)) return null;
  const chosen = () => (FIGURES.includes(context.state.get(KEY)) ? context.state.get(KEY) : "latency_p99_ns");
  return chart(
    {
      id: ID,
      title: "Latency against load",
      keys: [KEY, "bound"],
      controls: () => {
        const found = now();
        const figures = FIGURES.filter((key) => cells.some((cell) => cell.figures[key]));
        return [
          select(context, KEY, "figure", figures.map((key) => [key, context.figure(key).label]), chosen()),
          axisSelect(context, found),
          found !== null && raisesLoad(found.axis) && boundInput(context),
          kindToggle(context),
          floorToggle(context),
          logToggle(context, ID, found !== null && isTall(found.cut.cells, chosen())),
        ];
      },
      draw(frame) {
        const found = now();
        if (found === null) return "No axis of numbers varies here.";
        return draw(context, frame, found.axis, found.cut, chosen());
      },
    },
    context,
  );
}

function isTall(cells: Cell[], key: string): boolean {
  return spansDecades(cells.flatMap((cell) => value(cell, key) ?? []));
}

function draw(context: Context, frame: Frame, axis: Axis, { slices, cells }: Cut, chosen: string): Drawing | string {
  const floor = context.state.is("floor");
  const key = chosenKey(context, chosen);
  const unit: Unit = floor ? "multiple" : "ns";
  const of = (cell: Cell) => estimate(cell, key, floor);
  const has = cells.filter((cell) => of(cell) !== null);
  if (has.length === 0) return floor ? "No valid run of the kernel floor here: nothing to be a multiple of." : "No latency was measured here.";
  const bound = givenBound(context);
  const knees = raisesLoad(axis) ? kneesOf(context, cells, axis, bound) : [];
  const ringed = (cell: Cell) => knees.some(({ system, knee }) => system === cell.system && knee.load !== null && amount(cell.axes[axis.name]) === knee.load);
  const name = context.figure(key).label;
  const lines = linesOver(context, cells, axis, of, (cell) => [
    [name, of(cell), unit],
    ["delivered", cell.figures["delivered_ratio"], "share"],
  ], (cell) => quotable(cell, key), ringed).filter(({ system }) => !frame.hidden.has(system));
  const log = isLog(context, ID, isTall(cells, chosen));
  const y = scale(lines.flatMap(({ spots }) => spots.flatMap((spot) => [spot.y, spot.lo ?? spot.y, spot.hi ?? spot.y])), log);
  const x = across(axis, cells, isWide(axis, cells));
  const text = (value: number) => tick(value, unit);
  return {
    ...panels(frame, x, [{ name: floor ? `${name}, multiple of the kernel floor` : name, lines, scale: y, text, height: 280 }]),
    systems: systemsOf(context, has),
    table: tableOver(cells, axis, [
      { name, unit, of },
      { name: context.figure("delivered_ratio").label, unit: "share", of: (cell) => cell.figures["delivered_ratio"] ?? null },
    ]),
    absent: absentList(cells, axis, (cell) => of(cell) !== null, floor ? context : null),
    caption: [
      h("p", null, `${at(cutWords(slices))}${KINDS[key === chosen ? "latency" : kindOf(context)].from} Lines up and down: 95 % interval.${hollowWords(has, key)}`),
      knees.length > 0 && kneeTable(axis, knees, bound),
    ],
  };
}

/** What a knee is told by. */
const KNEE = ["latency_p99_ns", "delivered_ratio"];

interface Sustained {
  system: string;
  knee: Knee;
}

function kneesOf(context: Context, cells: Cell[], axis: Axis, bound: number | null): Sustained[] {
  const competing = systemsOf(context, cells);
  return competing.map((system) => {
    const loads = cells.filter((cell) => cell.system === system).flatMap((cell) => {
      const load = amount(cell.axes[axis.name]);
      if (load === null) return [];
      // What was skipped or is missing was not measured; only what ran can be invalid.
      return [{ load, valid: cell.status !== "failed" && !KNEE.some((key) => spoiled(cell, key)), ratio: value(cell, "delivered_ratio"), p99: value(cell, "latency_p99_ns") }];
    });
    return { system, knee: knee(loads, bound) };
  });
}

function kneeTable(axis: Axis, knees: Sustained[], bound: number | null): Child[] {
  const rule = `Sustained: the highest load that delivers at least ${SUSTAINED_RATIO * 100} % of what is expected and has its p99 within ${
    bound === null ? `${BOUND_MULTIPLE} times the p99 at the system's lowest load` : quantity(bound, "ns")}, with no lower one that does not. Ringed in the chart.`;
  const name = label(axis.label);
  const words = (load: number) => label(axis.values.find(({ value }) => amount(value) === load)?.label ?? String(load));
  return [h("p", null, rule), h(
    "div",
    { class: "knees", tabindex: "0", role: "region", "aria-label": "Load that is sustained" },
    h(
      "table",
      null,
      h("caption", { class: "unseen" }, "Load that is sustained"),
      h("thead", null, h("tr", null, ["system", `sustains: ${name}`, "with p99", "p99 bound", "what ends it"].map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", null, knees.map(({ system, knee: { load, p99, bound, stop } }) =>
        h(
          "tr",
          null,
          h("th", { scope: "row" }, label(system)),
          h("td", { class: "number" }, load === null ? "none" : `${stop === null ? "≥ " : ""}${words(load)}`),
          h("td", { class: "number" }, p99 === null ? NONE : quantity(p99, "ns")),
          h("td", { class: "number" }, bound === null ? NONE : quantity(bound, "ns")),
          h("td", null, stop === null ? "nothing that was measured" : `${STOPS[stop.why]} at ${words(stop.load)}`),
        ))),
    ),
  )];
}

const STOPS: Record<NonNullable<Knee["stop"]>["why"], string> = {
  "not valid": "not valid",
  lossy: "too little delivered",
  late: "p99 above the bound",
  "not measured": "not measured",
};

function boundInput(context: Context): HTMLElement {
  const typed = context.state.get("bound");
  const box = h("input", {
    type: "text", inputmode: "text", value: typed, placeholder: `${BOUND_MULTIPLE} × lowest`, maxlength: 16, "data-control": "bound",
    "aria-invalid": typed !== "" && givenBound(context) === null ? "true" : null,
    onchange: () => context.state.set("bound", box.value.trim()),
  });
  const wrong = typed !== "" && givenBound(context) === null;
  return h("label", { class: "pick" }, h("span", null, "p99 at most"), box, wrong && h("span", { role: "alert" }, "a time, such as 5 ms"));
}

/** ns, as typed: `5ms`; null where nothing was, or nothing that is a time. */
function givenBound(context: Context): number | null {
  const typed = context.state.get("bound");
  return /[a-zµ]\s*$/.test(typed) && !/[bB]\s*$/.test(typed) ? amount(typed) : null;
}
