/** Which systems meet constraints on their figures. Pure functions. */
import { label } from "./charts/clean";
import { amount, labelOf } from "./charts/slicing";
import { absence, verdict } from "./charts/tip";
import { quotable, said } from "./context";
import { quantity } from "./format";
import type { Axis, Cell, Figure, Result, Unit } from "./model";

/** A bound of a figure, in the figure's unit. */
export interface Constraint {
  figure: Figure;
  /** Whether the figure has to be below the bound; else above it. */
  isBelow: boolean;
  bound: number;
}

/** Whether all constraints are met; `open` where the runs show neither. */
export interface Answer {
  meets: "yes" | "no" | "open";
  /** Why not; empty of `yes`. */
  why: string;
}

/** A system, and at how many of its cells the constraints are met. */
export interface Fit {
  system: string;
  yes: number;
  no: number;
  open: number;
  /** The first cell at which they are not met or, where there is none, are open. */
  first: { cell: number; why: string } | null;
}

/** Words that may stand behind a number, and what they multiply it by. */
const SUFFIXES: Record<Unit, Record<string, number>> = {
  ns: {},
  per_s: { "": 1, k: 1e3, M: 1e6, G: 1e9 },
  bytes_per_s: {},
  bytes: {},
  share: { "": 1, "%": 0.01 },
  count: { "": 1, k: 1e3, M: 1e6 },
  cores: { "": 1, cores: 1, core: 1 },
  multiple: { "": 1, "×": 1, x: 1 },
};

/** An example of a bound in each unit. */
export const EXAMPLES: Record<Unit, string> = {
  ns: "5 ms", per_s: "10k/s", bytes_per_s: "10 MB/s", bytes: "100 MB", share: "99 %", count: "10", cores: "1.5", multiple: "2×",
};

const TIMES = ["ns", "us", "µs", "ms", "s", "m", "h"];

/** Returns a typed bound in a figure's unit; null where it is none. Times need a unit:
 *  `5` could be anything. */
export function parseBound(typed: string, unit: Unit): number | null {
  const match = /^(\d+(?:\.\d+)?|\.\d+)\s*(\S*)$/.exec(typed.trim().slice(0, 40));
  if (match === null) return null;
  const isRate = unit === "per_s" || unit === "bytes_per_s";
  const suffix = isRate ? match[2]!.replace(/\/s$/, "") : match[2]!;
  if (unit === "ns") return TIMES.includes(suffix) ? amount(match[1]! + suffix) : null;
  if (unit === "bytes" || unit === "bytes_per_s") return TIMES.includes(suffix) ? null : amount(match[1]! + suffix);
  const factor = Object.hasOwn(SUFFIXES[unit], suffix) ? SUFFIXES[unit][suffix] : undefined;
  // Without the last digits that a product leaves behind: 99.9 % is 0.999.
  return factor === undefined ? null : Number((Number(match[1]) * factor).toPrecision(15));
}

/** Returns whether a cell meets a constraint with its whole 95 % interval. */
export function meets(cell: Cell, { figure, isBelow, bound }: Constraint): Answer {
  const { key, unit } = figure;
  const found = cell.figures[key];
  if (found === undefined) return { meets: "open", why: `${figure.label}: ${absence(cell)}` };
  const [value, lo, hi] = found;
  const text = `${figure.label} ${said(cell, key, value, unit)}`;
  if (!quotable(cell, key)) return { meets: "open", why: `${text} is unreliable (${verdict(cell)})` };
  if (lo === null || hi === null) return { meets: "open", why: `${text} has no interval: one reliable run` };
  // A figure that is a bound itself has no end on that side.
  const low = cell.signs?.[key] === "≤" ? -Infinity : lo;
  const high = cell.signs?.[key] === "≥" ? Infinity : hi;
  const holds = (end: number) => (isBelow ? end < bound : end > bound);
  const [atLow, atHigh] = [holds(low), holds(high)];
  if (atLow && atHigh) return { meets: "yes", why: "" };
  const interval = lo === hi ? text : `${text} (${quantity(lo, unit)} to ${quantity(hi, unit)})`;
  const limit = quantity(bound, unit);
  if (atLow || atHigh) return { meets: "open", why: `${interval} may be on either side of ${limit}` };
  return { meets: "no", why: `${interval} is not ${isBelow ? "below" : "above"} ${limit}` };
}

/** Returns whether a cell meets all constraints; one that it does not meet settles it. */
export function meetsAll(cell: Cell, constraints: Constraint[]): Answer {
  const answers = constraints.map((constraint) => meets(cell, constraint));
  return answers.find(({ meets }) => meets === "no") ?? answers.find(({ meets }) => meets === "open") ?? { meets: "yes", why: "" };
}

/** Returns the systems that compete at the chosen points, those that fit at the most
 *  points first. `chosen` gives an axis's label, or nothing for all of its values. */
export function fits(result: Result, constraints: Constraint[], chosen: (axis: Axis) => string): Fit[] {
  const asked = result.axes.map((axis) => ({ axis, label: chosen(axis) })).filter(({ label }) => label !== "");
  const competing = result.systems.filter(({ kind }) => kind !== "reference").map(({ name }) => name);
  const found = new Map(competing.map((system): [string, Fit] => [system, { system, yes: 0, no: 0, open: 0, first: null }]));
  const reasons = new Map<string, Partial<Record<Answer["meets"], Fit["first"]>>>();
  result.cells.forEach((cell, index) => {
    const fit = found.get(cell.system);
    const isAt = asked.every(({ axis, label }) => labelOf(axis, cell.axes[axis.name]) === label);
    if (fit === undefined || cell.status === "skipped" || !isAt) return;
    const { meets, why } = meetsAll(cell, constraints);
    fit[meets] += 1;
    const of = reasons.get(cell.system) ?? {};
    of[meets] ??= { cell: index, why };
    reasons.set(cell.system, of);
  });
  for (const fit of found.values()) fit.first = reasons.get(fit.system)?.no ?? reasons.get(fit.system)?.open ?? null;
  return [...found.values()].filter(({ yes, no, open }) => yes + no + open > 0).sort((a, b) => b.yes - a.yes || a.no - b.no);
}

/** Returns a reason with the cell that it is of: `payload=1KiB: lost 3 is not below 1`. */
export function reasonWords(result: Result, { first }: Fit): string {
  if (first === null) return "";
  const cell = result.cells[first.cell]!;
  const point = result.points[cell.point]?.label ?? "";
  return label(point === "" ? first.why : `${point}: ${first.why}`, 300);
}
