import { tick } from "../charts/axes";
import { bars, type Bar } from "../charts/bars";
import type { Drawing, Frame } from "../charts/chart";
import { isLog, toggle } from "../charts/controls";
import { absentList, estimate, hollowWords, systemsOf, tableOver } from "../charts/over";
import { scale, spansDecades } from "../charts/scale";
import { cellTip } from "../charts/tip";
import { quotable, said, type Context } from "../context";
import { h, type Child } from "../dom";
import { quantity } from "../format";
import type { Cell, LatencyKind } from "../model";
import { UNRELIABLE } from "../words";
import { cutWords, type Cut } from "./slice";

/** The latencies to choose from: by kind, its name, and what it counts from. */
export const KINDS: Record<LatencyKind, { name: string; from: string; prefix: string }> = {
  latency: { name: "Headline", from: "Latency counts from when a message was due, less the generator delay.", prefix: "latency" },
  intended: { name: "From the due time", from: "Latency from when a message was due, the generator delay included.", prefix: "intended_latency" },
  service: { name: "Service latency", from: "Service latency, from the actual send time: blind to what waited to be sent.", prefix: "service_latency" },
};

/** Which latency the reader has chosen. */
export function kindOf(context: Context): LatencyKind {
  const chosen = context.state.get("from");
  return chosen === "intended" || chosen === "service" ? chosen : "latency";
}

/** The figure of a latency that the reader has chosen, for a headline figure;
 *  the headline's own where the other kind has none. */
export function chosenKey(context: Context, key: string): string {
  const other = key.replace(/^latency/, KINDS[kindOf(context)].prefix);
  return context.result.cells.some((cell) => cell.figures[other]) ? other : key;
}

/** A choice of latency, the same for all charts and tables. */
export function kindToggle(context: Context): Child {
  const chosen = kindOf(context);
  const has = (kind: LatencyKind) => context.result.cells.some((cell) => cell.curves[kind] || cell.figures[`${KINDS[kind].prefix}_p50_ns`]);
  const kinds = (Object.keys(KINDS) as LatencyKind[]).filter(has);
  if (kinds.length < 2) return null;
  const button = (kind: LatencyKind) => h("button", {
    type: "button", class: "toggle", "data-control": `from.${kind}`, title: KINDS[kind].from, "aria-pressed": kind === chosen ? "true" : "false",
    onclick: () => context.state.set("from", kind === "latency" ? "" : kind),
  }, KINDS[kind].name);
  return h("span", { class: "kinds", role: "group", "aria-label": "Latency" }, kinds.map(button));
}

/** Whether figures are shown as multiples of the floor's, where there is one. */
export function floorToggle(context: Context) {
  const any = context.result.points.some((point) => point.floor !== null);
  return any && toggle(context, "floor", "Multiple of the kernel floor");
}

/** One figure of the systems at a cut, as bars. */
export function drawBars(context: Context, frame: Frame, { slices, cells }: Cut, key: string, about: string, floor = false): Drawing | string {
  const unit = floor ? "multiple" : context.figure(key).unit;
  const of = (cell: Cell) => estimate(cell, key, floor);
  const with_ = cells.filter((cell) => of(cell) !== null);
  if (with_.length === 0) return nothing(cells, floor);
  const rows = with_.filter(({ system }) => !frame.hidden.has(system)).map((cell): Bar => {
    const [value, lo, hi] = of(cell)!;
    const index = context.result.cells.indexOf(cell);
    const valid = quotable(cell, key);
    return {
      system: cell.system, cell: index, valid, parts: [value], lo, hi,
      text: `${floor ? quantity(value, unit) : said(cell, key, value, unit)}${valid ? "" : ` ${UNRELIABLE}`}`,
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
    caption: [`${at(cutWords(slices))}${about}${hollowWords(with_, key)} Lines: 95 % interval.`],
  };
}

/** Why nothing is drawn. */
export function nothing(cells: Cell[], floor: boolean): string {
  if (floor) return "No reliable run of the kernel floor here to compare with.";
  return cells.length === 0 ? "The study has no cell here." : "Nothing was measured here that could be shown; the runs below say why.";
}

/** `At payload 1 KiB. `, or nothing. */
export function at(words: string): string {
  return words === "" ? "" : `At ${words}. `;
}
