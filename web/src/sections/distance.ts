import { chart, type Drawing, type Frame } from "../charts/chart";
import { label } from "../charts/clean";
import { headline, remoteRows, remotes, type Remote } from "../charts/distance";
import { systemsOf } from "../charts/over";
import type { Entry } from "../charts/table";
import { absence, cellTip, entry, runs, verdict } from "../charts/tip";
import { spoiled, type Context } from "../context";
import { h, type Child } from "../dom";
import { number } from "../format";
import type { Cell, Point } from "../model";
import { at } from "./shared";
import { cutWords, type Cut } from "./slice";

/** Shows how far each system of a point is from the best one, at the section's cut;
 *  null where systems are ranked at none of these points. */
export function distanceChart(context: Context, id: string, cells: Cell[], now: () => Cut): HTMLElement | null {
  const points = [...new Set(cells.map(({ point }) => point))].map((index) => context.result.points[index]!);
  if (!points.some((point) => rowsAt(context, point).length > 0)) return null;
  return chart({ id, title: "Distance to the best", draw: (frame) => draw(context, frame, now()) }, context);
}

function rowsAt(context: Context, point: Point): Remote[] {
  const { better } = context.figure(headline(point));
  return remotes(context.result, point, better ?? "lower");
}

function draw(context: Context, frame: Frame, { slices, cells }: Cut): Drawing | string {
  const point = cells[0] && context.result.points[cells[0].point];
  if (point === undefined) return "The study has no cell here.";
  const all = rowsAt(context, point);
  const rows = all.filter(({ system }) => !frame.hidden.has(system));
  const figure = context.figure(headline(point));
  if (all.length === 0) return whyNone(point);
  const best = label(point.ranks[figure.key]!.systems[0]!);
  const tips = (row: Remote) => {
    const tip = cellTip(context, row.cell, [[figure.label, context.result.cells[row.cell]!.figures[figure.key], figure.unit]]);
    tip.rows.unshift(["standing", row.standing], ["best looking", best], ["times as good", rangeWords(row)]);
    return tip;
  };
  const shown = all.map(({ cell }) => context.result.cells[cell]!);
  return {
    ...remoteRows(frame.theme, frame.width, context.result, rows, `${figure.label}: times as good the best one is`, tips),
    systems: systemsOf(context, shown),
    named: true,
    table: {
      columns: ["system", "standing", figure.label, "95 % from", "to", `ratio to ${best}`, "best is at least", "best is at most", "verdict", "runs"],
      rows: all.map((row) => numbers(context.result.cells[row.cell]!, row, figure)),
    },
    absent: absent(context, cells, all, figure.key),
    caption: [`${at(cutWords(slices))}Marks: how many times as good as each system ${best} is by its median ${figure.label}; lines: the range of that factor for the best system (arrow: no upper bound); filled: may be the best, hollow: shown to be behind.`],
  };
}

/** `1.84× (1.5× to 2.2×)`. */
function rangeWords({ ratio, range }: Remote): string {
  const text = ratio === null ? "–" : `${number(ratio)}×`;
  if (range === null) return text;
  return `${text} (${number(range.least)}× ${range.most === null ? "or more" : `to ${number(range.most)}×`})`;
}

function numbers(cell: Cell, { system, standing, ratio, range }: Remote, { key, unit }: { key: string; unit: Parameters<typeof entry>[1] }): Entry[] {
  const [value, lo, hi] = cell.figures[key] ?? [null, null, null];
  const most: Entry = range !== null && range.most === null ? { text: "no bound", value: null, unit: "multiple" } : entry(range?.most, "multiple");
  return [
    label(system), standing, entry(value, unit), entry(lo, unit), entry(hi, unit),
    entry(ratio, "multiple"), entry(range?.least, "multiple"), most, verdict(cell), runs(cell),
  ];
}

function whyNone(point: Point): string {
  const rank = point.ranks[headline(point)];
  if (rank?.kind === "alone") return "Only one system here has a figure that may be compared.";
  return rank?.why ? `The systems here are not ranked: ${label(rank.why, 300)}.` : "No two systems here have a figure that may be compared.";
}

/** The systems that compete and have no row, with the reason. */
function absent(context: Context, cells: Cell[], rows: Remote[], key: string): Child[] {
  const has = new Set(rows.map(({ system }) => system));
  const left = cells.filter(({ system, word }) => word !== "reference" && !has.has(system) && context.result.systems.some(({ name, kind }) => name === system && kind !== "reference"));
  if (left.length === 0) return [];
  const why = (cell: Cell) => (spoiled(cell, key) ? verdict(cell) : absence(cell));
  return [h("p", null, "Not shown:"), h("ul", null, left.map((cell) => h("li", null, h("strong", null, label(cell.system)), `: ${why(cell)}`)))];
}
