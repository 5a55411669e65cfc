import { tick } from "../charts/axes";
import { chart, type Drawing, type Frame } from "../charts/chart";
import { label } from "../charts/clean";
import { isLog, logToggle, select } from "../charts/controls";
import { panels, type Spot } from "../charts/lines";
import { absentList, hollowWords, systemsOf, tableOver } from "../charts/over";
import { scale, spansDecades, withMargin } from "../charts/scale";
import { labelOf, present } from "../charts/slicing";
import { cellTip } from "../charts/tip";
import { quotable, value, type Context, type Section } from "../context";
import { h } from "../dom";
import type { Axis, Cell, Figure } from "../model";
import { at } from "./shared";
import { cut, cutWords, sliceBar, usefulness, type Cut } from "./slice";

const ID = "price";
const KEY = "price";
const SHARE = "acked_lost_ratio";
/** What an acknowledgement costs, the first that was measured: a time, and where messages go as fast as they can their number. */
const FIRST = ["ack_latency_p50_ns", "acked", "latency_p50_ns", "delivered_per_s"];
const FIRST_FLAT_OUT = ["acked", "delivered_per_s"];

/** What the settings of systems cost, against the acknowledged messages that are lost all the same. */
export const price: Section = {
  id: ID,
  title: "Price of durability",
  shown: "whole",
  has: ({ result }) => result.card === null && known(result.cells).length > 1 && result.cells.some((cell) => (value(cell, SHARE) ?? 0) > 0),
  render(context) {
    const now = () => cutNow(context);
    return h("div", null, sliceBar(context, now), priceChart(context, now));
  },
};

const known = (cells: Cell[]): Cell[] => cells.filter((cell) => cell.figures[SHARE]);

const isSetting = ({ name }: Axis): boolean => ["part", "durable", "use"].includes(name) || name.startsWith("options.");

/** The cells at the values that the reader chose, with every setting: each is a mark. */
function cutNow(context: Context): Cut {
  const cells = context.result.cells.filter(({ status }) => status !== "skipped");
  return cut(context, cells, context.result.axes.filter(isSetting).map(({ name }) => name), usefulness(SHARE));
}

/** The axes by which settings are named: the part, where a study has parts, or all that vary. */
function namedBy(context: Context, cells: Cell[]): Axis[] {
  const varying = context.result.axes.filter((axis) => isSetting(axis) && present(axis, cells).length > 1);
  const parts = varying.filter(({ name }) => name === "part");
  return parts.length > 0 ? parts : varying;
}

/** The figures that can be drawn against the share, and the one that is. */
function shownOf(context: Context, cells: Cell[]): { figures: Figure[]; figure: Figure } | null {
  const figures = context.page.figures.filter(({ key }) => key !== SHARE && cells.some((cell) => cell.figures[SHARE] && cell.figures[key]));
  const first = cells.every(({ unthrottled }) => unthrottled) ? FIRST_FLAT_OUT : FIRST;
  const keys = [context.state.get(KEY), ...first, figures[0]?.key];
  const figure = keys.map((key) => figures.find((one) => one.key === key)).find((one) => one !== undefined);
  return figure === undefined ? null : { figures, figure };
}

function priceChart(context: Context, now: () => Cut): HTMLElement {
  const shown = () => shownOf(context, now().cells);
  return chart(
    {
      id: ID,
      title: "Price of durability",
      keys: [KEY],
      heading: () => `${shown()?.figure.label ?? "Price"} against acknowledged messages lost`,
      controls: () => {
        const it = shown();
        if (it === null) return [];
        const tall = spansDecades(now().cells.map((cell) => value(cell, it.figure.key) ?? NaN));
        return [select(context, KEY, "figure", it.figures.map(({ key, label }) => [key, label]), it.figure.key), logToggle(context, ID, tall)];
      },
      draw(frame) {
        const it = shown();
        return it === null ? "No acknowledged message was counted here." : draw(context, frame, now(), it.figure);
      },
    },
    context,
  );
}

function draw(context: Context, frame: Frame, { slices, cells }: Cut, { key, label: name, unit, about }: Figure): Drawing {
  const own = namedBy(context, cells);
  const named = (cell: Cell) => own.filter(({ name }) => cell.axes[name] !== undefined).map((axis) => label(labelOf(axis, cell.axes[axis.name]), 24)).join(", ");
  const share = context.figure(SHARE);
  const has = cells.filter((cell) => cell.figures[SHARE] && cell.figures[key]);
  const spotOf = (cell: Cell): Spot => {
    const index = context.result.cells.indexOf(cell);
    const [y, lo, hi] = cell.figures[key]!;
    const tip = cellTip(context, index, [[name, cell.figures[key], unit], [share.label, cell.figures[SHARE], share.unit]]);
    tip.rows.unshift(...own.map((axis): [string, string] => [label(axis.label), label(labelOf(axis, cell.axes[axis.name]))]));
    return { x: value(cell, SHARE)!, y, lo, hi, valid: quotable(cell, key) && quotable(cell, SHARE), cell: index, tip, name: named(cell) };
  };
  const systems = systemsOf(context, has);
  const lines = systems.filter((system) => !frame.hidden.has(system)).map((system) => ({
    system, apart: true, spots: has.filter((cell) => cell.system === system).map(spotOf),
  }));
  const values = lines.flatMap(({ spots }) => spots.flatMap(({ y, lo, hi }) => [y, lo ?? y, hi ?? y]));
  const shares = has.map((cell) => value(cell, SHARE)!);
  const x = withMargin(scale(shares, false), Math.min(...shares), Math.max(...shares));
  const y = scale(values, isLog(context, ID, spansDecades(values)));
  const across = { name: share.label, scale: x, text: (amount: number) => tick(amount, "share") };
  return {
    // No mark is moved aside: both its places say something.
    ...panels(frame, across, [{ name, lines, scale: y, text: (amount) => tick(amount, unit), height: 300, guides: [] }]),
    systems,
    table: tableOver(cells, own, [{ name, unit, of: (cell) => cell.figures[key] ?? null }, { name: share.label, unit: share.unit, of: (cell) => cell.figures[SHARE] ?? null }]),
    absent: absentList(cells, own[0] ?? null, (cell) => has.includes(cell)),
    caption: [h("p", null, `${at(cutWords(slices))}A mark for each system and setting. Up: ${about}. To the right: acknowledged messages that were lost; at the left edge none was. Lines up and down: 95 % interval.${hollowWords(has, key, SHARE)}`)],
  };
}
