import { tick } from "../charts/axes";
import { bars, type Bar } from "../charts/bars";
import { chart, type ChartSpec } from "../charts/chart";
import { absentList, hollowWords, systemsOf, tableOver } from "../charts/over";
import { scale } from "../charts/scale";
import { cellTip } from "../charts/tip";
import { quotable, type Context, type Section } from "../context";
import { h } from "../dom";
import { quantity } from "../format";
import type { Cell } from "../model";
import { UNRELIABLE } from "../words";
import { at, nothing } from "./shared";
import { cut, cutWords, sliceBar, usefulness, type Cut } from "./slice";

const TIME = "message_time_ns";
const FLOOR = "language_floor_ns";
/** What stands beside the bar, in tables and in the tip. */
const BESIDE = [TIME, FLOOR, "binding_ns", "over_baseline", "cpu_ns_per_message", "uss_bytes_median", "runtime_paused_share", "runtime_pause_max_ns", "allocated_bytes_per_message", "wire_bytes_per_message", "discovery_ns", "steady_after_ns"];

/** What a binding costs beyond its language, where a floor or a baseline was measured. */
export const bindings: Section = {
  id: "bindings",
  title: "Bindings",
  has: ({ result }) => result.cells.some((cell) => cell.figures[FLOOR] ?? cell.figures["over_baseline"]),
  render(context) {
    const now = () => cut(context, context.result.cells, [], usefulness(TIME));
    return h("div", null, sliceBar(context, now), chart(cost(context, now), context));
  },
};

function cost(context: Context, now: () => Cut): ChartSpec {
  return {
    id: "bindings",
    title: "What a message takes",
    draw(frame) {
      const { slices, cells } = now();
      const has = cells.filter((cell) => cell.figures[TIME]);
      if (has.length === 0) return nothing(cells, false);
      const { label, unit } = context.figure(TIME);
      const figures = BESIDE.filter((key) => has.some((cell) => cell.figures[key])).map((key) => {
        const { label: name, unit } = context.figure(key);
        return { name, unit, of: (cell: Cell) => cell.figures[key] ?? null };
      });
      const rows = has.filter(({ system }) => !frame.hidden.has(system)).map((cell): Bar => {
        const [all, lo, hi] = cell.figures[TIME]!;
        const index = context.result.cells.indexOf(cell);
        const valid = quotable(cell, TIME);
        const floor = Math.min(cell.figures[FLOOR]?.[0] ?? all, all);
        return {
          system: cell.system, cell: index, valid, parts: [floor, all - floor], lo, hi,
          text: `${quantity(all, unit)}${valid ? "" : ` ${UNRELIABLE}`}`,
          tip: cellTip(context, index, figures.map(({ name, unit, of }) => [name, of(cell), unit])),
        };
      });
      const axis = scale(rows.flatMap(({ parts, hi }) => [parts[0]! + parts[1]!, hi ?? NaN]), false);
      return {
        ...bars(frame.theme, frame.width, rows, axis, label, (amount) => tick(amount, unit)),
        systems: systemsOf(context, has),
        named: true,
        table: tableOver(cells, null, figures),
        absent: absentList(cells, null, (cell) => cell.figures[TIME] !== undefined),
        caption: [
          `${at(cutWords(slices))}Half of a median round trip, the median latency at a rate or, unthrottled, the time from one delivery to the next. Full colour: the floor of the language, its own loop over a queue; light: what the binding and all below it add. Bars of one colour have no such floor. Lines: 95 % interval.${hollowWords(has, TIME)}`,
        ],
      };
    },
  };
}
