import { tick } from "../charts/axes";
import { chart, type Drawing, type Frame } from "../charts/chart";
import { label } from "../charts/clean";
import { isLog, logToggle, select } from "../charts/controls";
import { knee, SUSTAINED_RATIO, BOUND_MULTIPLE, type Knee } from "../charts/knee";
import { panels } from "../charts/lines";
import { absentList, across, estimate, hollowWords, isWide, linesOver, spread, SPREAD, systemsOf, tableOver } from "../charts/over";
import { scale, spansDecades } from "../charts/scale";
import { amount, loadAxes, points, present, raisesLoad, wordAxes } from "../charts/slicing";
import { quotable, spoiled, value, type Context } from "../context";
import { h, type Child } from "../dom";
import { NONE, quantity } from "../format";
import type { Axis, Cell, Estimate, Figure, Unit } from "../model";
import { UNRELIABLE } from "../words";
import { at, chosenKey, floorToggle, KINDS, kindOf, kindToggle } from "./shared";
import { cut, cutWords, usefulness, type Cut } from "./slice";

const ID = "load";
const KEY = "latency";

/** The figure that is shown first. */
const FIRST = "latency_p99_ns";

/** The choice of the median with bars from the least latency to p95. */
const RANGE = "range";

/** Stands beside every figure: what few messages cost says little where many are lost. */
const RATIO = "delivered_ratio";

/** The axis that charts over load take, and where they are cut; `last` is taken
 *  only where there is no other or where the reader chose it; with `words`, axes
 *  without numbers can be taken too. */
export function loadCut(context: Context, cells: Cell[], use: (cell: Cell) => number, last: string | null = null, words = false): { axis: Axis; axes: Axis[]; cut: Cut } | null {
  // The part is chosen first: axes differ between parts.
  const part = context.result.axes.filter(({ name }) => name === "part");
  const within = part.length === 0 ? cells : cut(context, cells, context.result.axes.map(({ name }) => name).filter((name) => name !== "part"), use).cells;
  const own = context.result.axes.filter(({ name }) => name !== "system" && name !== "part");
  const axes = [...loadAxes(within, own), ...(words ? wordAxes(within, own) : [])];
  const axis = axes.find(({ name }) => name === context.state.get("x")) ?? axes.find(({ name }) => name !== last) ?? axes[0];
  return axis === undefined ? null : { axis, axes, cut: cut(context, cells, [axis.name], use) };
}

/** The choice of a horizontal axis, where there is one. */
export function axisSelect(context: Context, found: ReturnType<typeof loadCut>): Child {
  if (found === null || found.axes.length < 2) return null;
  return select(context, "x", "over", found.axes.map(({ name, label }) => [name, label]), found.axis.name);
}

/** What the chart shows. */
interface Shown {
  /** As it was chosen: of the figures, or `RANGE`. */
  choice: string;
  /** The figure itself, of the latency that was chosen. */
  key: string;
  isLatency: boolean;
  isRange: boolean;
  /** Whether it is shown as a multiple of the floor's. */
  floor: boolean;
  name: string;
  unit: Unit;
  of(cell: Cell): Estimate | null;
  /** Figures that may all be quoted where the mark is filled. */
  keys: readonly string[];
}

function shownOf(context: Context, cells: Cell[]): Shown {
  const asked = context.state.get(KEY);
  const isRange = asked === RANGE && cells.some((cell) => spread(cell) !== null);
  if (isRange) {
    const name = `${context.figure(SPREAD[0]).label}, bars from min to p95`;
    return { choice: RANGE, key: SPREAD[0], isLatency: true, isRange, floor: false, name, unit: "ns", of: spread, keys: SPREAD };
  }
  const choice = figuresOf(context, cells).find(({ key }) => key === asked)?.key ?? FIRST;
  const isLatency = choice.startsWith("latency_");
  const key = isLatency ? chosenKey(context, choice) : choice;
  const floor = context.state.is("floor") && hasFloor(context, key);
  const { label, unit } = context.figure(key);
  const name = floor ? `${label}, multiple of the kernel floor` : label;
  return { choice, key, isLatency, isRange, floor, name, unit: floor ? "multiple" : unit, of: (cell) => estimate(cell, key, floor), keys: [key] };
}

/** The figures that some of these cells have, in the order of the summary. */
function figuresOf(context: Context, cells: Cell[]): Figure[] {
  return context.page.figures.filter(({ key }) => cells.some((cell) => cell.figures[key]));
}

/** Whether a figure is known as a multiple of the floor's; of latencies it is said
 *  in the chart where there is no valid run of the floor. */
function hasFloor(context: Context, key: string): boolean {
  return key.includes("latency_") || context.result.cells.some((cell) => cell.floors?.[key]);
}

/** Any figure against any axis, and the load that each system sustains; at first
 *  a latency against the load. */
export function loadChart(context: Context, cells: Cell[]): HTMLElement | null {
  const shown = () => shownOf(context, cells);
  const now = () => {
    const { choice, isLatency, keys } = shown();
    return loadCut(context, cells, isLatency && choice !== RANGE ? usefulness("latency_p50_ns", FIRST) : usefulness(...keys), null, true);
  };
  if (context.result.axes.every((axis) => axis.name === "system" || axis.name === "part" || present(axis, cells).length < 2)) return null;
  return chart(
    {
      id: ID,
      title: "Latency against load",
      keys: [KEY, "bound"],
      heading: () => heading(context, shown(), now()?.axis),
      controls: () => {
        const found = now();
        const it = shown();
        const figures = figuresOf(context, cells).map(({ key, label }): [string, string] => [key, label]);
        const range: [string, string][] = cells.some((cell) => spread(cell) !== null) ? [[RANGE, "latency p50, bars from min to p95"]] : [];
        return [
          select(context, KEY, "figure", [...range, ...figures], it.choice),
          axisSelect(context, found),
          found !== null && it.isLatency && raisesLoad(found.axis) && boundInput(context),
          it.isLatency && !it.isRange && kindToggle(context),
          !it.isRange && hasFloor(context, it.key) && floorToggle(context),
          logToggle(context, ID, found !== null && isTall(found.cut.cells, it)),
        ];
      },
      draw(frame) {
        const found = now();
        if (found === null) return "No axis varies here.";
        return draw(context, frame, found.axis, found.cut, shown());
      },
    },
    context,
  );
}

function heading(context: Context, { isLatency, key }: Shown, axis: Axis | undefined): string {
  const over = axis === undefined || (isLatency && raisesLoad(axis)) ? "load" : label(axis.label);
  return `${capitalised(isLatency ? "latency" : context.figure(key).label)} against ${over}`;
}

function isTall(cells: Cell[], { isRange, key }: Shown): boolean {
  return spansDecades(cells.flatMap((cell) => (isRange ? spread(cell) ?? [] : value(cell, key) ?? [])).filter((end) => end !== null));
}

function draw(context: Context, frame: Frame, axis: Axis, { slices, cells }: Cut, shown: Shown): Drawing | string {
  const { key, isLatency, isRange, floor, name, unit, of, keys } = shown;
  const has = cells.filter((cell) => of(cell) !== null);
  if (has.length === 0) return floor ? "No reliable run of the kernel floor here to compare with." : isLatency ? "No latency was measured here." : "This figure was not measured here.";
  const bound = givenBound(context);
  const knees = isLatency && raisesLoad(axis) ? kneesOf(context, cells, axis, bound) : [];
  const ringed = (cell: Cell) => knees.some(({ system, knee }) => system === cell.system && knee.load !== null && amount(cell.axes[axis.name]) === knee.load);
  const figures = isRange
    ? SPREAD.map((key) => ({ name: context.figure(key).label, unit, of: (cell: Cell) => cell.figures[key] ?? null }))
    : [{ name: floor ? context.figure(key).label : name, unit, of }];
  const ratio = key === RATIO ? [] : [{ name: context.figure(RATIO).label, unit: "share" as const, of: (cell: Cell) => cell.figures[RATIO] ?? null }];
  const isWords = points(axis, cells).length < 2;
  const lines = linesOver(context, cells, axis, of, (cell) => [
    ...figures.map(({ name, unit, of }): [string, Estimate | null, Unit] => [name, of(cell), unit]),
    ["delivered", cell.figures[RATIO], "share"],
  ], (cell) => keys.every((key) => quotable(cell, key)), ringed)
    .filter(({ system }) => !frame.hidden.has(system)).map((line) => ({ ...line, apart: isWords }));
  const log = isLog(context, ID, isTall(cells, shown));
  const y = scale(lines.flatMap(({ spots }) => spots.flatMap((spot) => [spot.y, spot.lo ?? spot.y, spot.hi ?? spot.y])), log);
  const x = across(axis, cells, isWide(axis, cells));
  const text = (value: number) => tick(value, unit);
  const about = isLatency ? KINDS[isRange || key === shown.choice ? "latency" : kindOf(context)].from : context.figure(key).about;
  const bars = isRange ? "Lines up and down: from the least latency to p95, each the median over the runs; no 95 % interval." : "Lines up and down: 95 % interval.";
  return {
    ...panels(frame, x, [{ name, lines, scale: y, text, height: 280 }]),
    systems: systemsOf(context, has),
    table: tableOver(cells, axis, [...figures, ...ratio]),
    absent: absentList(cells, axis, (cell) => of(cell) !== null, floor ? context : null),
    caption: [
      h("p", null, `${at(cutWords(slices))}${sentence(about)} ${bars}${hollowWords(has, ...keys)}`),
      knees.length > 0 && kneeTable(axis, knees, bound),
    ],
  };
}

function capitalised(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** The text with a capital at its beginning and a full stop at its end. */
function sentence(text: string): string {
  return capitalised(/[.!?]$/.test(text) ? text : `${text}.`);
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
  unreliable: UNRELIABLE,
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
