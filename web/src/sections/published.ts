import { tick } from "../charts/axes";
import { chart, type Drawing, type Frame } from "../charts/chart";
import { label } from "../charts/clean";
import { select } from "../charts/controls";
import { panels, type Line } from "../charts/lines";
import { absentList, across, hollowWords, isWide, linesOver, systemsOf } from "../charts/over";
import { scale, spansDecades } from "../charts/scale";
import { labelOf } from "../charts/slicing";
import type { Entry } from "../charts/table";
import { entry, verdict } from "../charts/tip";
import { quotable, type Context, type Section } from "../context";
import { h } from "../dom";
import { number } from "../format";
import type { Axis, Cell, Estimate, Reference } from "../model";
import { at } from "./shared";
import { axisSelect, loadCut } from "./load";
import { cut, cutWords, sliceBar, type Cut } from "./slice";

const KEY = "reference";

/** Ours beside what others have published, measured on another machine. */
export const published: Section = {
  id: "published",
  title: "Against published figures",
  has: ({ result }) => result.reference !== null && result.reference.values.length > 0,
  render(context) {
    const { cells } = context.result;
    const reference = context.result.reference!;
    const figures = [...new Set(reference.values.map(({ figure }) => figure))];
    const chosen = () => figures.find((figure) => figure === context.state.get(KEY)) ?? figures[0]!;
    const theirs = () => new Map(reference.values.filter(({ figure }) => figure === chosen()).map((row) => [row.cell, row]));
    const use = (cell: Cell) => (theirs().has(cells.indexOf(cell)) ? 1 : 0);
    const covered = () => {
      const rows = theirs();
      const points = new Set([...rows.keys()].map((index) => cells[index]?.point));
      return cells.filter(({ point }) => points.has(point));
    };
    const over = () => loadCut(context, covered(), use);
    const now = (): Cut & { axis: Axis | null } => {
      const found = over();
      return found === null ? { ...cut(context, covered(), [], use), axis: null } : { ...found.cut, axis: found.axis };
    };
    return h(
      "div",
      null,
      sliceBar(context, now),
      chart(
        {
          id: "published",
          title: "Measured here and published",
          keys: [KEY],
          controls: () => [
            figures.length > 1 && select(context, KEY, "figure", figures.map((key) => [key, context.figure(key).label]), chosen()),
            axisSelect(context, over()),
          ],
          draw: (frame) => draw(context, frame, reference, now(), chosen(), theirs()),
        },
        context,
      ),
    );
  },
};

type Row = Reference["values"][number];

/** The system as an axis of words, where nothing else varies. */
function systemAxis(context: Context, cells: Cell[]): Axis {
  const names = systemsOf(context, cells);
  return { name: "system", label: "system", numeric: false, values: names.map((name) => ({ value: name, label: name })) };
}

function draw(context: Context, frame: Frame, reference: Reference, { slices, cells, axis: numeric }: Cut & { axis: Axis | null }, key: string, theirs: Map<number, Row>): Drawing | string {
  const { unit, label: name } = context.figure(key);
  const axis = numeric ?? systemAxis(context, cells);
  const index = (cell: Cell) => context.result.cells.indexOf(cell);
  const other = (cell: Cell): Estimate | null => {
    const row = theirs.get(index(cell));
    return row ? [row.value, null, null] : null;
  };
  const has = cells.filter((cell) => other(cell) !== null);
  if (has.length === 0) return "Nothing was published for these cells.";
  const own = (cell: Cell) => cell.figures[key] ?? null;
  const ratio = (cell: Cell) => {
    const [ours, published] = [own(cell), other(cell)];
    return ours !== null && published !== null && published[0] > 0 ? ours[0] / published[0] : null;
  };
  const tips = (cell: Cell): [string, Estimate | null, typeof unit][] => [[`${name}, here`, own(cell), unit], ["published", other(cell), unit]];
  const visible = ({ system }: { system: string }) => !frame.hidden.has(system);
  const ours = linesOver(context, cells, axis, own, tips, (cell) => quotable(cell, key)).filter(visible);
  const published = linesOver(context, cells, axis, other, tips, (cell) => quotable(cell, key)).filter(visible).map((line): Line => ({ ...line, foreign: true }));
  for (const { spots } of [...ours, ...published]) {
    for (const { cell, tip } of spots) {
      const times = ratio(context.result.cells[cell]!);
      const note = theirs.get(cell)?.note;
      if (times !== null) tip.rows.push(["here over published", `${number(times)}×`]);
      if (note) tip.rows.push(["note", label(note, 120)]);
    }
  }
  const values = [...ours, ...published].flatMap(({ spots }) => spots.flatMap(({ y, hi }) => [y, hi ?? y]));
  return {
    ...panels(frame, across(axis, cells, isWide(axis, cells)), [
      { name, lines: [...ours, ...published], scale: scale(values, spansDecades(values)), text: (amount) => tick(amount, unit), height: 280 },
    ]),
    systems: systemsOf(context, cells.filter((cell) => own(cell) !== null || other(cell) !== null)),
    table: {
      columns: ["system", axis.label, "verdict", `${name}, here`, "95 % from", "to", "published", "here over published", "note"],
      rows: cells.map((cell): Entry[] => {
        const times = ratio(cell);
        const [mine, row] = [own(cell), theirs.get(index(cell))];
        return [
          label(cell.system), label(labelOf(axis, cell.axes[axis.name] ?? cell.system)), verdict(cell),
          entry(mine?.[0], unit), entry(mine?.[1], unit), entry(mine?.[2], unit), entry(row?.value, unit),
          { text: times === null ? "–" : `${number(times)}×`, value: times }, row?.note ? label(row.note, 120) : "",
        ];
      }),
    },
    absent: absentList(cells, axis, (cell) => own(cell) !== null),
    caption: [
      h("p", null, `${at(cutWords(slices))}Marks with a dot within: published, another machine: ${label(reference.machine, 160)}. Joined: measured here, with the 95 % interval.${hollowWords(cells, key)}`),
      ratios(has.filter((cell) => quotable(cell, key)), ratio),
      h("p", null, `Source: ${label(reference.source, 240)}.${reference.note ? ` ${label(reference.note, 400)}` : ""}${
        reference.unmatched > 0 ? ` ${reference.unmatched} published ${reference.unmatched === 1 ? "figure belongs" : "figures belong"} to no cell of this study.` : ""}`),
    ],
  };
}

/** How far ours are from theirs, by system, over all points that are shown. */
function ratios(cells: Cell[], ratio: (cell: Cell) => number | null): HTMLElement | null {
  const found = new Map<string, number[]>();
  for (const cell of cells) {
    const times = ratio(cell);
    if (times !== null) found.set(cell.system, [...(found.get(cell.system) ?? []), times]);
  }
  if (found.size === 0) return null;
  const words = [...found].map(([system, all]) => {
    const [low, high] = [number(Math.min(...all)), number(Math.max(...all))];
    return `${label(system)} ${low === high ? `${low}×` : `${low} to ${high}×`}`;
  });
  return h("p", null, `Here over published, reliable cells: ${words.join("; ")}.`);
}
