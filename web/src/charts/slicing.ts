import type { Axis, Cell } from "../model";

type Value = string | number | boolean;

/** An axis that a chart does not use itself, and where it is cut. */
export interface Slice {
  axis: Axis;
  /** Values that there are, given the axes before it. */
  options: string[];
  /** The label of the chosen one. */
  chosen: string;
  value: Value;
}

/** The axis that tells the parts of a study apart: each has its own axes, so it
 *  is chosen before all others. */
const PART = "part";

/** How axes that raise the load are known, the plainest first. */
const LOAD_AXES = ["rate", "pairs", "publishers", "clients", "connections", "subscribers", "payload"];

/** A value's label: as the axis has it. */
export function labelOf(axis: Axis, value: Value | undefined): string {
  return axis.values.find((known) => known.value === value)?.label ?? String(value ?? "–");
}

/** The labels of an axis that occur in these cells, in the axis's order. */
export function present(axis: Axis, cells: Cell[]): string[] {
  const found = new Set(cells.map((cell) => cell.axes[axis.name]));
  return axis.values.filter(({ value }) => found.has(value)).map(({ label }) => label);
}

/** Cuts the cells at one value of each axis that varies and that the chart does
 *  not use. What was chosen before counts where it is there; else the value with
 *  the most use, and of several such the middle one. `use` says how much a cell
 *  has to show: 0 for nothing. */
export function slices(
  cells: Cell[],
  axes: Axis[],
  used: ReadonlySet<string>,
  chosen: (axis: string) => string,
  use: (cell: Cell) => number,
): { slices: Slice[]; cells: Cell[] } {
  const order = [...axes.filter(({ name }) => name === PART), ...axes.filter(({ name }) => name !== PART)];
  const found: Slice[] = [];
  let left = cells;
  for (const axis of order) {
    if (axis.name === "system" || used.has(axis.name)) continue;
    const options = present(axis, left);
    if (options.length === 0) continue;
    const wanted = chosen(axis.name);
    const label = options.includes(wanted) ? wanted : best(axis, options, left, use);
    const value = axis.values.find((known) => known.label === label)!.value;
    left = left.filter((cell) => cell.axes[axis.name] === value);
    if (options.length > 1) found.push({ axis, options, chosen: label, value });
  }
  return { slices: found, cells: left };
}

function best(axis: Axis, options: string[], cells: Cell[], use: (cell: Cell) => number): string {
  const worth = options.map((label) => {
    const value = axis.values.find((known) => known.label === label)!.value;
    return cells.reduce((sum, cell) => sum + (cell.axes[axis.name] === value ? use(cell) : 0), 0);
  });
  const most = worth.reduce((a, b) => Math.max(a, b));
  const top = options.filter((_, i) => worth[i] === most);
  return top[Math.floor((top.length - 1) / 2)]!;
}

/** Axes that can be the x axis of a chart of these cells: numbers of which at
 *  least two occur, those that raise the load first. */
export function loadAxes(cells: Cell[], axes: Axis[]): Axis[] {
  const usable = axes.filter((axis) => points(axis, cells).length > 1);
  const rank = (axis: Axis) => {
    const place = LOAD_AXES.indexOf(axis.name);
    return place < 0 ? LOAD_AXES.length : place;
  };
  return usable.sort((a, b) => rank(a) - rank(b));
}

/** Returns the axes that vary in these cells and have no numbers to stand at. */
export function wordAxes(cells: Cell[], axes: Axis[]): Axis[] {
  return axes.filter((axis) => points(axis, cells).length < 2 && present(axis, cells).length > 1);
}

/** The values of an axis that stand on an axis of numbers, with their amounts. */
export function points(axis: Axis, cells: Cell[]): { value: Value; label: string; amount: number }[] {
  const found = new Set(cells.map((cell) => cell.axes[axis.name]));
  return axis.values
    .filter(({ value }) => found.has(value))
    .map(({ value, label }) => ({ value, label, amount: amount(value) }))
    .filter((point): point is { value: Value; label: string; amount: number } => point.amount !== null)
    .sort((a, b) => a.amount - b.amount);
}

/** Whether more of this is more to do: a payload is not a load that is sustained. */
export function raisesLoad(axis: Axis): boolean {
  return LOAD_AXES.includes(axis.name) && axis.name !== "payload";
}

const UNITS: Record<string, number> = {
  "": 1, B: 1, KB: 1e3, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3,
  ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, m: 6e10, h: 3.6e12,
};

/** What a value comes to: `"32KiB"` is 32,768, `"5ms"` is 5,000,000 ns; null for
 *  what is not a number. */
export function amount(value: Value | undefined): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "string") return null;
  const match = /^\s*(\d+(?:\.\d+)?|\.\d+)\s*([A-Za-zµ]*)\s*$/.exec(value.slice(0, 40));
  const factor = match && Object.hasOwn(UNITS, match[2]!) ? UNITS[match[2]!] : undefined;
  return match && factor !== undefined ? Number(match[1]) * factor : null;
}
