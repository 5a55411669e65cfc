import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from "echarts";
import type { Context } from "../context";
import { h } from "../dom";
import { NONE, number, withInterval } from "../format";
import type { Change, Comparison, Estimate } from "../model";
import { axis, tick } from "./axes";
import { chart, type Drawing, type Frame } from "./chart";
import { label } from "./clean";
import { whisker } from "./lines";
import { scale } from "./scale";
import type { Entry } from "./table";
import type { Theme } from "./theme";
import { entry, type Tip } from "./tip";

/** The figure that the comparison as a whole shows. */
const KEY = "compare.figure";
const ROWS_KEY = "forest-rows";
const ROWS = 60;
const ROW_HEIGHT = 22;
const ABOVE = 26;
const BELOW = 46;

/** A change of which it is known by how much. */
export interface Row {
  label: string;
  change: Change;
  ratio: Estimate;
}

/** The changes of a figure, the largest first. */
export function rowsOf(comparison: Comparison, column: string): Row[] {
  const size = ({ ratio }: Row) => Math.abs(Math.log(ratio[0]));
  return comparison.same
    .flatMap(({ label, changes }) => changes.filter((change) => change.column === column).map((change) => ({ label, change })))
    .flatMap(({ label, change }) => (change.ratio !== null && change.ratio[0] > 0 ? [{ label, change, ratio: change.ratio }] : []))
    .sort((a, b) => size(b) - size(a));
}

/** The ratio of the second result to the first, a row a cell. */
export function forest(comparison: Comparison, context: Context): HTMLElement {
  const columns = [...new Set(comparison.same.flatMap(({ changes }) => changes.filter(({ ratio }) => ratio !== null).map(({ column }) => column)))];
  const chosen = () => columns.find((column) => column === context.state.get(KEY)) ?? columns.find((column) => column === "latency_p50_ns") ?? columns[0];
  const limit = () => Math.max(ROWS, Math.min(10_000, Number(context.state.get(ROWS_KEY)) || ROWS));
  return chart(
    {
      id: "forest",
      title: "Second over first",
      keys: [KEY, ROWS_KEY],
      controls: () => {
        const column = chosen();
        const count = column === undefined ? 0 : rowsOf(comparison, column).length;
        const more = () => context.state.set(ROWS_KEY, String(limit() + ROWS));
        return [
          count > limit() && h("button", { type: "button", class: "toggle", "data-control": ROWS_KEY, onclick: more }, `Show ${Math.min(ROWS, count - limit())} more of ${count}`),
        ];
      },
      draw(frame) {
        const column = chosen();
        const rows = column === undefined ? [] : rowsOf(comparison, column);
        if (column === undefined || rows.length === 0) return "There is no figure that both results have.";
        return draw(context, frame, column, rows, limit());
      },
    },
    context,
  );
}

function colour(theme: Theme, { outcome }: Change): string {
  switch (outcome) {
    case "better": return theme.good;
    case "worse": return theme.bad;
    case "changed": return theme.accent;
    case "undecided": return theme.warn;
    case "no difference": return theme.muted;
  }
}

function draw(context: Context, { theme, width }: Frame, column: string, all: Row[], limit: number): Drawing {
  const rows = all.slice(0, limit);
  const figure = context.figure(column);
  const narrow = width < 520;
  const names = Math.min(narrow ? 120 : 360, 16 + 6.4 * Math.max(...rows.map((row) => label(row.label, 60).length)));
  const x = scale(rows.flatMap(({ ratio: [value, lo, hi] }) => [value, lo ?? value, hi ?? value, 1]), true);
  const text = (ratio: number) => tick(ratio, "multiple");
  const height = rows.length * ROW_HEIGHT;
  const option = {
    grid: { left: names, right: narrow ? 92 : 150, top: ABOVE, height, containLabel: false },
    xAxis: axis(x, theme, `${figure.label}, second over first`, text, { bottom: true }),
    yAxis: {
      type: "category", inverse: true, data: rows.map((_, index) => String(index)), axisLine: { show: false }, axisTick: { show: false },
      axisLabel: { color: theme.ink, fontSize: 11, interval: 0, width: names - 10, overflow: "truncate", formatter: (index: string) => label(rows[Number(index)]?.label ?? "", 60) },
    },
    series: [{
      type: "custom",
      encode: { x: 0, y: 1 },
      data: rows.map(({ label: name, change, ratio }, index) => ({ value: [x.to(ratio[0]), index], tip: tipOf(name, change, ratio, figure.unit) })),
      markLine: { silent: true, symbol: "none", animation: false, label: { show: false }, lineStyle: { color: theme.ink, width: 1, type: "solid" }, data: [{ xAxis: 0 }] },
      renderItem: (params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => drawRow(theme, rows[params.dataIndex]!, x, params.dataIndex, api, narrow),
    }],
  };
  return {
    option,
    height: ABOVE + height + BELOW,
    systems: [],
    table: {
      columns: ["cell", `${figure.label}, first`, "second", "second over first", "95 % from", "to", "outcome"],
      rows: all.map(({ label: name, change: { a, b, outcome }, ratio }): Entry[] => [
        label(name, 120), entry(a?.[0], figure.unit), entry(b?.[0], figure.unit), entry(ratio[0], "multiple"), entry(ratio[1], "multiple"), entry(ratio[2], "multiple"), outcome,
      ]),
    },
    caption: [`The largest change first${all.length > rows.length ? `, ${rows.length} of ${all.length}` : ""}. Lines: 95 % interval of the ratio. At 1× nothing has changed${
      figure.better === null ? "" : `; ${figure.better === "lower" ? "left of it the second is better" : "right of it the second is better"}`}.`],
  };
}

function drawRow(theme: Theme, { change, ratio: [value, lo, hi] }: Row, x: ReturnType<typeof scale>, index: number, api: CustomSeriesRenderItemAPI, narrow: boolean) {
  const at = (ratio: number) => (api.coord([x.to(Math.max(ratio, x.min)), index]) as [number, number])[0];
  const y = (api.coord([x.to(1), index]) as [number, number])[1];
  const paint = colour(theme, change);
  const quiet = change.outcome === "no difference" || change.outcome === "undecided";
  const end = Math.max(at(value) + 5, hi === null ? 0 : at(hi));
  return {
    type: "group" as const,
    children: [
      ...(lo !== null && hi !== null && hi > lo ? [whisker([at(lo), y], [at(hi), y], paint)] : []),
      { type: "circle", shape: { cx: at(value), cy: y, r: 4 }, style: { fill: quiet ? theme.ground : paint, stroke: paint, lineWidth: 1.4 } },
      { type: "text", silent: true, style: { x: end + 6, y, text: `${narrow ? "" : `${number(value)}× `}${change.outcome}`, fill: paint, font: `11px ${theme.font}`, textVerticalAlign: "middle" } },
    ],
  } as never;
}

function tipOf(name: string, { a, b, outcome, why }: Change, ratio: Estimate, unit: Parameters<typeof withInterval>[1]): Tip {
  const said = (estimate: Estimate | null) => (estimate ? withInterval(estimate, unit) : NONE);
  const rows: [string, string][] = [["first", said(a)], ["second", said(b)], ["second over first", withInterval(ratio, "multiple")], ["outcome", outcome]];
  return { title: label(name, 80), rows: why ? [...rows, ["why", label(why, 160)]] : rows };
}
