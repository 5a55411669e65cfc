import { tick } from "../charts/axes";
import { bars, type Bar } from "../charts/bars";
import type { Drawing, Frame } from "../charts/chart";
import { isLog, toggle } from "../charts/controls";
import { absentList, estimate, hollowWords, systemsOf, tableOver } from "../charts/over";
import { scale, spansDecades } from "../charts/scale";
import { cellTip } from "../charts/tip";
import type { Context } from "../context";
import { quantity } from "../format";
import type { Cell } from "../model";
import { cutWords, type Cut } from "./slice";

/** Whether service latency is shown beside. */
export const serviceToggle = (context: Context) => toggle(context, "service", "Service latency");

/** Whether figures are shown as multiples of the floor's, where there is one. */
export function floorToggle(context: Context) {
  const any = context.result.points.some((point) => point.floor !== null);
  return any && toggle(context, "floor", "Multiple of the kernel floor");
}

/** One figure of the systems at a cut, as bars. */
export function drawBars(context: Context, frame: Frame, { slices, cells }: Cut, key: string, about: string, floor = false): Drawing | string {
  const unit = floor ? "multiple" : context.figure(key).unit;
  const of = (cell: Cell) => estimate(context, cell, key, floor);
  const with_ = cells.filter((cell) => of(cell) !== null);
  if (with_.length === 0) return nothing(cells, floor);
  const rows = with_.filter(({ system }) => !frame.hidden.has(system)).map((cell): Bar => {
    const [value, lo, hi] = of(cell)!;
    const index = context.result.cells.indexOf(cell);
    const valid = cell.status === "valid";
    return {
      system: cell.system, cell: index, valid, parts: [value], lo, hi,
      text: `${quantity(value, unit)}${valid ? "" : " invalid"}`,
      tip: cellTip(context, index, [[context.figure(key).label, of(cell), unit]]),
    };
  });
  const values = rows.flatMap(({ parts, lo, hi }) => [...parts, lo ?? NaN, hi ?? NaN]);
  const axis = scale(values, isLog(context, key, spansDecades(rows.flatMap(({ parts }) => parts))));
  const text = (value: number) => tick(value, unit);
  return {
    ...bars(frame.theme, frame.width, rows, axis, context.figure(key).label, text),
    systems: systemsOf(context, with_),
    named: true,
    table: tableOver(cells, null, [{ name: context.figure(key).label, unit, of }]),
    absent: absentList(cells, null, (cell) => of(cell) !== null),
    caption: [`${at(cutWords(slices))}${about}${hollowWords(with_)} Lines: 95 % interval.`],
  };
}

/** Why nothing is drawn. */
export function nothing(cells: Cell[], floor: boolean): string {
  if (floor) return "No valid run of the kernel floor here: nothing to be a multiple of.";
  return cells.length === 0 ? "The study has no cell here." : "Nothing was measured here that could be shown; the runs below say why.";
}

/** `At payload 1 KiB. `, or nothing. */
export function at(words: string): string {
  return words === "" ? "" : `At ${words}. `;
}
