import { axis, grid, tick } from "../charts/axes";
import { chart, tooltip, type Drawing, type Frame } from "../charts/chart";
import type { Option } from "../charts/echarts";
import { scale, spansDecades } from "../charts/scale";
import type { Entry, Table } from "../charts/table";
import type { Theme } from "../charts/theme";
import { SECOND, spans, timePanels, type Span, type TimePanel, type Trace } from "../charts/timepanels";
import { entry, type Tip } from "../charts/tip";
import type { Context } from "../context";
import { quantity } from "../format";
import type { RunRecord, Unit } from "../model";

const ABOVE = 46;
const BETWEEN = 36;
const BELOW = 46;
const PANEL_HEIGHT = 110;

/** What a run did over time, beside what befell it. */
export function timeSeries(record: RunRecord, context: Context): HTMLElement {
  return chart({ id: "timeseries", title: "Over time", draw: (frame) => draw(record, frame) }, context);
}

function draw(record: RunRecord, { theme }: Frame): Drawing | string {
  const stack = timePanels(record);
  if (stack.length === 0) return "The record has no series.";
  const marked = spans(record);
  const ends = [0, record.window_ns / SECOND, ...marked.flatMap(({ from, to }) => [from, to])];
  const all = [...ends, ...stack.flatMap(({ traces }) => traces.flatMap(({ points }) => points.map(([at]) => at)))];
  const x = scale(all, false, false);
  [x.min, x.max] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
  const colour = (trace: Trace) => theme[trace.colour];
  const shown: { trace: Trace; unit: Unit }[] = [];
  const series: Option[] = [];
  stack.forEach(({ traces, unit }, index) => {
    const y = panelScale(stack[index]!);
    traces.forEach((trace, i) => {
      shown.push({ trace, unit });
      series.push({
        type: "line", name: trace.name, xAxisIndex: index, yAxisIndex: index, symbol: trace.points.length < 3 ? "circle" : "none", symbolSize: 4, connectNulls: false,
        lineStyle: { color: colour(trace), width: 1.3, type: trace.dash ?? "solid" }, itemStyle: { color: colour(trace) },
        data: trace.points.map(([at, value]) => [at, value === null || (y.log && value <= 0) ? null : y.to(value)]),
        ...(i === 0 ? { markArea: areas(theme, marked, index === 0), markLine: instants(theme, marked, index === 0) } : {}),
      });
    });
  });
  const tip = (params: unknown): Tip | null => {
    const items = (params as { seriesIndex: number; dataIndex: number }[]).flatMap(({ seriesIndex, dataIndex }) => {
      const it = shown[seriesIndex];
      const point = it?.trace.points[dataIndex];
      return it && point && point[1] !== null ? [{ name: it.trace.name, unit: it.unit, at: point[0], value: point[1] }] : [];
    });
    const first = items[0];
    if (first === undefined) return null;
    const during = marked.filter(({ from, to }) => first.at >= from && first.at <= to).map(({ name }): [string, string] => ["during", name]);
    const rows = items.map(({ name, unit, value }): [string, string] => [unit === "cores" ? `${name} processors` : unit === "bytes" ? `${name} memory` : name, quantity(value, unit)]);
    return { title: `${first.at.toFixed(first.at < 10 ? 2 : 1)} s`, rows: [...rows, ...during] };
  };
  const top = (index: number) => ABOVE + index * (PANEL_HEIGHT + BETWEEN);
  return {
    height: top(stack.length) - BETWEEN + BELOW,
    systems: [],
    option: {
      grid: stack.map((_, index) => grid(top(index), PANEL_HEIGHT)),
      xAxis: stack.map((_, index) => axis(x, theme, index === stack.length - 1 ? "seconds from the window's beginning" : "", (at) => String(at), { grid: index, bottom: true, labels: index === stack.length - 1 })),
      yAxis: stack.map((panel, index) => axis(panelScale(panel), theme, `${panel.name}: ${panel.traces.map(({ name, dash }) => `${name}${dash ? " (dashed)" : ""}`).join(", ")}`, (value) => tick(value, panel.unit), { grid: index })),
      axisPointer: { link: [{ xAxisIndex: "all" }] },
      tooltip: tooltip(theme, "axis", tip),
      series,
    },
    table: table(stack),
    caption: ["Each point is a slice of time. Latency from when a message was due, less the generator delay, of what arrived in the slice. Shaded: warm-up, drain and faults."],
  };
}

function panelScale({ traces, unit }: TimePanel) {
  const values = traces.flatMap(({ points }) => points.flatMap(([, value]) => value ?? []));
  return scale(values, unit === "ns" && spansDecades(values));
}

function areas(theme: Theme, marked: Span[], named: boolean): Option {
  const wide = marked.filter(({ from, to }) => to > from);
  return {
    silent: true,
    data: wide.map(({ name, from, to, kind }) => [
      {
        name, xAxis: from,
        itemStyle: { color: kind === "fault" ? theme.bad : theme.muted, opacity: kind === "fault" ? 0.18 : 0.1 },
        label: { show: named, position: "insideTop", color: kind === "fault" ? theme.bad : theme.muted, fontSize: 11, formatter: name },
      },
      { xAxis: to },
    ]),
  };
}

/** Faults that have an instant and no length. */
function instants(theme: Theme, marked: Span[], named: boolean): Option {
  const short = marked.filter(({ from, to, kind }) => kind === "fault" && to <= from);
  return {
    silent: true, symbol: "none",
    lineStyle: { color: theme.bad, width: 1.5, type: "solid" },
    data: short.map(({ name, from }) => ({ xAxis: from, label: { show: named, formatter: name, color: theme.bad, fontSize: 11, position: "end" } })),
  };
}

function table(stack: TimePanel[]): Table {
  const named = stack.flatMap(({ name, unit, traces }) => traces.map((trace) => ({ title: `${name}, ${trace.name}`, unit, points: trace.points })));
  const rows = new Map<number, Entry[]>();
  named.forEach(({ points, unit }, column) => {
    for (const [at, value] of points) {
      const row = rows.get(at) ?? named.map(() => ({ text: "–", value: null }) as Entry);
      row[column] = entry(value, unit);
      rows.set(at, row);
    }
  });
  return {
    columns: ["seconds", ...named.map(({ title }) => title)],
    rows: [...rows].sort(([a], [b]) => a - b).map(([at, row]) => [{ text: at.toFixed(2), value: at }, ...row]),
  };
}
