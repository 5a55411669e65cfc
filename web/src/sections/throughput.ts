import { tick } from "../charts/axes";
import { bars, type Bar } from "../charts/bars";
import { chart, type Drawing, type Frame } from "../charts/chart";
import { isLog, logToggle, toggle } from "../charts/controls";
import { panels, type Panel } from "../charts/lines";
import { absentList, across, estimate, hollowWords, isWide, linesOver, systemsOf, tableOver } from "../charts/over";
import { receivers } from "../charts/receivers";
import { scale, spansDecades } from "../charts/scale";
import { cellTip } from "../charts/tip";
import { quotable, said, value, type Context, type Section } from "../context";
import { h } from "../dom";
import { NONE, quantity } from "../format";
import type { Axis, Cell, Unit } from "../model";
import { UNRELIABLE } from "../words";
import { at, floorToggle, nothing } from "./shared";
import { distanceChart } from "./distance";
import { axisSelect, loadCut } from "./load";
import { cut, cutWords, sliceBar, usefulness, type Cut } from "./slice";

const RATIO = "delivered_ratio";

/** What is delivered a second, and how much of what was due. */
export const throughput: Section = {
  id: "throughput",
  title: "Throughput",
  has: ({ result }) => result.cells.some((cell) => cell.figures["delivered_per_s"]),
  render(context) {
    const { cells } = context.result;
    // Where messages are sent as fast as they go, throughput is the answer;
    // elsewhere it is what was asked for.
    const use = (cell: Cell) => usefulness("delivered_per_s")(cell) * (cell.unthrottled ? 3 : 1);
    const now = () => cut(context, cells, [], use);
    // At given rates systems are ranked by latency: that distance is in the section on latency.
    const flatOut = cells.filter((cell) => cell.unthrottled);
    const distance = distanceChart(context, "distance-max", flatOut, () => cut(context, flatOut, [], use));
    return h("div", null, sliceBar(context, now), atCut(context, now), distance, overLoad(context, cells, use), offered(context, cells));
  },
};

const bytesToggle = (context: Context) => toggle(context, "bytes", "MB/s");

/** What is shown: messages or bytes, as such or as a multiple of the floor's. */
function shown(context: Context): { key: string; unit: Unit; floor: boolean; name: string } {
  const key = context.state.is("bytes") ? "delivered_bytes_per_s" : "delivered_per_s";
  const floor = context.state.is("floor");
  const name = context.figure(key).label;
  return { key, floor, unit: floor ? "multiple" : context.figure(key).unit, name: floor ? `${name}, multiple of the kernel floor` : name };
}

function atCut(context: Context, now: () => Cut): HTMLElement {
  return chart(
    {
      id: "delivered",
      title: "Delivered a second",
      keys: ["bytes"],
      controls: () => [bytesToggle(context), floorToggle(context)],
      draw(frame) {
        const { key, unit, floor, name } = shown(context);
        const { slices, cells } = now();
        const of = (cell: Cell) => estimate(cell, key, floor);
        const has = cells.filter((cell) => of(cell) !== null);
        if (has.length === 0) return nothing(cells, floor);
        const rows = has.filter(({ system }) => !frame.hidden.has(system)).map((cell): Bar => {
          const [amount, lo, hi] = of(cell)!;
          const index = context.result.cells.indexOf(cell);
          const valid = quotable(cell, key);
          const ratio = value(cell, RATIO);
          return {
            system: cell.system, cell: index, valid, parts: [amount], lo, hi,
            text: `${floor ? quantity(amount, unit) : said(cell, key, amount, unit)} · ${ratio === null ? NONE : quantity(ratio, "share")}${valid ? "" : ` ${UNRELIABLE}`}`,
            tip: cellTip(context, index, [[name, of(cell), unit], ["delivered of expected", cell.figures[RATIO], "share"], ["sent", cell.figures["sent_per_s"], "per_s"]]),
          };
        });
        const axis = scale(rows.flatMap(({ parts, hi }) => [...parts, hi ?? NaN]), isLog(context, "delivered", spansDecades(rows.flatMap(({ parts }) => parts))));
        return {
          ...bars(frame.theme, frame.width, rows, axis, name, (amount) => tick(amount, unit)),
          systems: systemsOf(context, has),
          named: true,
          table: table(context, cells, key, unit, floor, name),
          absent: absentList(cells, null, (cell) => of(cell) !== null, floor ? context : null),
          caption: [`${at(cutWords(slices))}Behind each: delivered a second, and the share of the expected messages that arrived at all. Lines: 95 % interval.${atLeast(has, key)}${hollowWords(has, key)}`],
        };
      },
    },
    context,
  );
}

/** What ≥ means, where a figure has it. */
function atLeast(cells: Cell[], key: string): string {
  return cells.some((cell) => cell.signs?.[key] === "≥") ? " ≥: the load generator was at its limit, and the system reaches at least so much." : "";
}

function table(context: Context, cells: Cell[], key: string, unit: Unit, floor: boolean, name: string, axis: Axis | null = null) {
  return tableOver(cells, axis, [
    { name, unit, of: (cell) => estimate(cell, key, floor) },
    { name: context.figure(RATIO).label, unit: "share", of: (cell) => cell.figures[RATIO] ?? null },
    { name: context.figure("sent_per_s").label, unit: "per_s", of: (cell) => cell.figures["sent_per_s"] ?? null },
  ]);
}

function overLoad(context: Context, cells: Cell[], use: (cell: Cell) => number): HTMLElement | null {
  // What a system carries at most, over anything but the rate, is what is asked
  // for where messages are sent as fast as they go.
  const now = () => loadCut(context, cells, use, cells.some(({ unthrottled }) => unthrottled) ? "rate" : null);
  if (now() === null) return null;
  return chart(
    {
      id: "delivered-over",
      title: "Delivered a second against load",
      keys: ["bytes"],
      controls: () => [axisSelect(context, now()), bytesToggle(context), floorToggle(context), logToggle(context, "delivered-over", isTall(context, now()?.cut.cells ?? []))],
      draw(frame) {
        const found = now();
        return found === null ? "No axis of numbers varies here." : drawOver(context, frame, found);
      },
    },
    context,
  );
}

function isTall(context: Context, cells: Cell[]): boolean {
  const { key } = shown(context);
  return spansDecades(cells.flatMap((cell) => value(cell, key) ?? []));
}

function drawOver(context: Context, frame: Frame, { axis, cut: { slices, cells } }: NonNullable<ReturnType<typeof loadCut>>): Drawing | string {
  const { key, unit, floor, name } = shown(context);
  const of = (cell: Cell) => estimate(cell, key, floor);
  const ratio = (cell: Cell) => cell.figures[RATIO] ?? null;
  const has = cells.filter((cell) => of(cell) !== null);
  if (has.length === 0) return nothing(cells, floor);
  const tips = (cell: Cell): Parameters<typeof cellTip>[2] => [[name, of(cell), unit], ["delivered of expected", ratio(cell), "share"]];
  const visible = ({ system }: { system: string }) => !frame.hidden.has(system);
  const upper = linesOver(context, cells, axis, of, tips, (cell) => quotable(cell, key)).filter(visible);
  const lower = linesOver(context, cells, axis, ratio, tips, (cell) => quotable(cell, RATIO)).filter(visible);
  const values = upper.flatMap(({ spots }) => spots.flatMap((spot) => [spot.y, spot.hi ?? spot.y]));
  const log = isLog(context, "delivered-over", isTall(context, cells));
  const stack: Panel[] = [
    { name, lines: upper, scale: scale(values, log), text: (amount) => tick(amount, unit), height: 240 },
    { name: "delivered of expected", lines: lower, scale: scale([0, 1], false), text: (share) => `${Math.round(share * 100)} %`, height: 90 },
  ];
  return {
    ...panels(frame, across(axis, cells, isWide(axis, cells)), stack),
    systems: systemsOf(context, has),
    table: table(context, cells, key, unit, floor, name, axis),
    absent: absentList(cells, axis, (cell) => of(cell) !== null, floor ? context : null),
    caption: [`${at(cutWords(slices))}Below: the share of the expected messages that arrived. Lines up and down: 95 % interval.${atLeast(has, key)}${hollowWords(has, key)}`],
  };
}

/** What arrives against what is due: below the diagonal a system falls behind. */
function offered(context: Context, all: Cell[]): HTMLElement | null {
  const throttled = all.filter((cell) => !cell.unthrottled && cell.figures["offered_per_s"] && cell.figures["delivered_per_s"]);
  const now = () => loadCut(context, all.filter((cell) => !cell.unthrottled), usefulness("offered_per_s"));
  const rates = new Set(throttled.map((cell) => due(context, cell)));
  if (rates.size < 2 || now() === null) return null;
  return chart(
    {
      id: "offered",
      title: "Offered and delivered",
      controls: () => [axisSelect(context, now())],
      draw(frame) {
        const found = now();
        if (found === null) return "No axis of numbers varies here.";
        const { slices, cells } = found.cut;
        const has = cells.filter((cell) => due(context, cell) !== null && cell.figures["delivered_per_s"]);
        if (has.length === 0) return nothing(cells, false);
        const lines = linesOver(context, has, found.axis, (cell) => cell.figures["delivered_per_s"] ?? null, (cell) => [
          ["due a second", [due(context, cell)!, null, null], "per_s"],
          ["delivered", cell.figures["delivered_per_s"], "per_s"],
          ["delivered of expected", cell.figures[RATIO], "share"],
        ], (cell) => quotable(cell, "delivered_per_s")).filter(({ system }) => !frame.hidden.has(system));
        for (const { spots } of lines) for (const spot of spots) spot.x = due(context, context.result.cells[spot.cell]!)!;
        const xs = lines.flatMap(({ spots }) => spots.map(({ x }) => x));
        const both = [...xs, ...lines.flatMap(({ spots }) => spots.map(({ y }) => y))];
        const log = spansDecades(xs);
        const x = scale(both, log);
        const y = scale(both, log);
        const text = (amount: number) => tick(amount, "per_s");
        const diagonal = { from: [x.log ? x.min : 0, x.log ? x.min : 0], to: [x.max, x.max], text: "all that is due" } as const;
        return {
          ...panels(frame, { name: "due at the subscribers", scale: x, text }, [
            { name: "delivered", lines, scale: y, text, height: 260, guides: [{ from: [...diagonal.from], to: [...diagonal.to], text: diagonal.text }] },
          ]),
          systems: systemsOf(context, has),
          table: tableOver(cells, found.axis, [
            { name: "due a second", unit: "per_s", of: (cell) => { const rate = due(context, cell); return rate === null ? null : [rate, null, null]; } },
            { name: context.figure("delivered_per_s").label, unit: "per_s", of: (cell) => cell.figures["delivered_per_s"] ?? null },
            { name: context.figure(RATIO).label, unit: "share", of: (cell) => cell.figures[RATIO] ?? null },
          ]),
          absent: absentList(cells, found.axis, (cell) => has.includes(cell)),
          caption: [`${at(cutWords(slices))}Due is what is offered, times the receivers of each message. On the diagonal everything arrives in time; below it a system falls behind.${hollowWords(has, "delivered_per_s")}`],
        };
      },
    },
    context,
  );
}

/** Arrivals that are due a second; null where it cannot be known. */
function due(context: Context, cell: Cell): number | null {
  const rate = value(cell, "offered_per_s");
  const point = context.result.points[cell.point];
  if (rate === null || point === undefined) return null;
  const each = receivers(cell, point.cells.map((index) => context.result.cells[index]!));
  return each === null ? null : rate * each;
}
