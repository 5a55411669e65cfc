import { tick } from "./axes";
import { spoiled, type Context } from "../context";
import { h, type Child } from "../dom";
import type { Axis, Cell, Estimate, Unit } from "../model";
import { label } from "./clean";
import type { Across, Line, Spot } from "./lines";
import { scale, spansDecades, withMargin } from "./scale";
import { labelOf, points } from "./slicing";
import type { Entry } from "./table";
import { absence, cellTip, entry, runs, verdict } from "./tip";

const TICKS_MAX = 9;

/** A figure of a cell, in its unit or as a multiple of the floor's. */
export function estimate(cell: Cell, key: string, floor: boolean): Estimate | null {
  return (floor ? cell.floors?.[key] : cell.figures[key]) ?? null;
}

/** The figures that a spread is made of: its middle, its low end, its high end. */
export const SPREAD = ["latency_p50_ns", "latency_min_ns", "latency_p95_ns"] as const;

/** Returns a cell's median latency with bars from the least latency to p95, each the
 *  median over its runs; null where one of them was not measured. */
export function spread(cell: Cell): Estimate | null {
  const [middle, low, high] = SPREAD.map((key) => cell.figures[key]?.[0]);
  return middle === undefined || low === undefined || high === undefined ? null : [middle, low, high];
}

/** Where an axis's values stand: at their amounts or, where they are words, one
 *  after the other. */
function places(axis: Axis, cells: Cell[]): { value: string | number | boolean; label: string; amount: number }[] {
  const numbers = points(axis, cells);
  return numbers.length > 1 ? numbers : axis.values.map(({ value, label }, amount) => ({ value, label, amount }));
}

/** The horizontal axis of a chart over an axis of the study. */
export function across(axis: Axis, cells: Cell[], log: boolean): Across {
  const all = places(axis, cells);
  const amounts = all.map(({ amount }) => amount);
  const ticks = all.length <= TICKS_MAX ? all.map(({ amount, label: text }) => ({ value: amount, text: label(text, 16) })) : undefined;
  const found = withMargin(scale(amounts, log), Math.min(...amounts), Math.max(...amounts));
  return { name: label(axis.label), scale: found, text: (amount) => tick(amount, "count"), ...(ticks ? { ticks } : {}) };
}

/** Whether an axis of the study is better logarithmic: its values span much. */
export function isWide(axis: Axis, cells: Cell[]): boolean {
  return spansDecades(points(axis, cells).map(({ amount }) => amount));
}

/** A line a system of a figure over an axis. */
export function linesOver(
  context: Context,
  cells: Cell[],
  axis: Axis,
  of: (cell: Cell) => Estimate | null,
  tips: (cell: Cell) => [string, Estimate | null | undefined, Unit][],
  counts: (cell: Cell) => boolean,
  ringed: (cell: Cell) => boolean = () => false,
): Line[] {
  const amounts = new Map(places(axis, cells).map(({ value, amount }) => [value, amount]));
  const lines = new Map<string, Spot[]>();
  for (const cell of cells) {
    const x = amounts.get(cell.axes[axis.name] ?? (axis.name === "system" ? cell.system : ""));
    const found = of(cell);
    if (x === undefined || found === null) continue;
    const index = context.result.cells.indexOf(cell);
    const tip = cellTip(context, index, tips(cell));
    tip.rows.unshift([label(axis.label), label(labelOf(axis, cell.axes[axis.name]))]);
    const spot = { x, y: found[0], lo: found[1], hi: found[2], valid: counts(cell), cell: index, tip, ringed: ringed(cell) };
    lines.set(cell.system, [...(lines.get(cell.system) ?? []), spot]);
  }
  return [...lines].map(([system, spots]) => ({ system, spots }));
}

/** The same as a table: system, axis or axes, verdict, runs, then each figure with its interval. */
export function tableOver(cells: Cell[], axis: Axis | Axis[] | null, figures: { name: string; unit: Unit; of(cell: Cell): Estimate | null }[]) {
  const axes = axis === null ? [] : [axis].flat();
  const columns = ["system", ...axes.map(({ label }) => label), "verdict", "runs"];
  const heads = figures.flatMap(({ name }) => [name, "95 % from", "to"]);
  const rows = cells.map((cell): Entry[] => {
    const what: Entry[] = [label(cell.system), ...axes.map((axis) => label(labelOf(axis, cell.axes[axis.name])))];
    const numbers = figures.flatMap(({ unit, of }) => {
      const found = of(cell);
      return [entry(found?.[0], unit), entry(found?.[1], unit), entry(found?.[2], unit)];
    });
    return [...what, verdict(cell), runs(cell), ...numbers];
  });
  return { columns: [...columns, ...heads], rows };
}

/** The cells that have nothing to show, with the reason, as a list: those with
 *  the same reason at the same values together. `floor` is
 *  given where multiples of the floor are shown. */
export function absentList(cells: Cell[], axis: Axis | null, has: (cell: Cell) => boolean, floor: Context | null = null): Child[] {
  const bySystem = new Map<string, { system: string; why: string; at: string[] }>();
  for (const cell of cells) {
    if (has(cell)) continue;
    const why = floor ? floorless(floor, cell) : absence(cell);
    const key = `${cell.system}\0${why}`;
    const group = bySystem.get(key) ?? { system: cell.system, why, at: [] };
    if (axis) group.at.push(labelOf(axis, cell.axes[axis.name]));
    bySystem.set(key, group);
  }
  const together = new Map<string, { systems: string[]; why: string; at: string }>();
  for (const { system, why, at } of bySystem.values()) {
    const where = at.length > 0 && axis ? ` at ${label(axis.label)} ${label(at.join(", "), 80)}` : "";
    const group = together.get(`${why}\0${where}`) ?? { systems: [], why, at: where };
    group.systems.push(label(system));
    together.set(`${why}\0${where}`, group);
  }
  if (together.size === 0) return [];
  return [h("p", null, "Not shown:"), h("ul", null, [...together.values()].map(({ systems, why, at }) => h("li", null, h("strong", null, systems.join(", ")), at, `: ${why}`)))];
}

/** Why a cell is not a multiple of the floor: its own reason, or the floor's. */
function floorless(context: Context, cell: Cell): string {
  const measured = cell.status === "valid" || cell.status === "partly" || cell.status === "invalid";
  return measured && (context.result.points[cell.point]?.floor ?? null) === null ? "no reliable run of the kernel floor to compare with" : absence(cell);
}

/** The systems of these cells in the study's order. */
export function systemsOf(context: Context, cells: Cell[]): string[] {
  const found = new Set(cells.map(({ system }) => system));
  const known = context.result.systems.map(({ name }) => name).filter((name) => found.has(name));
  return [...known, ...[...found].filter((name) => !known.includes(name))];
}

/** What hollow marks mean, where there are any. */
export function hollowWords(cells: Cell[], ...keys: string[]): string {
  return cells.some((cell) => keys.some((key) => spoiled(cell, key))) ? " Hollow: unreliable." : "";
}
