import { axis, grid, tick } from "../charts/axes";
import { chart, tooltip, type Drawing, type Frame } from "../charts/chart";
import { label } from "../charts/clean";
import type { Option } from "../charts/echarts";
import { scale, spansDecades } from "../charts/scale";
import type { Entry, Table } from "../charts/table";
import type { Theme } from "../charts/theme";
import { entry, type Tip } from "../charts/tip";
import type { Context } from "../context";
import { quantity } from "../format";
import type { RunRecord, Unit } from "../model";

const SECOND = 1e9;
const ABOVE = 46;
const BETWEEN = 36;
const BELOW = 46;
const PANEL_HEIGHT = 110;

/** A line over time: pairs of seconds from the window's beginning and a value. */
export interface Trace {
  name: string;
  colour: "ink" | "accent" | "bad" | "muted";
  dash?: number[];
  points: [number, number | null][];
}

export interface TimePanel {
  name: string;
  unit: Unit;
  traces: Trace[];
}

/** What a run did over time, beside what befell it. */
export function timeSeries(record: RunRecord, context: Context): HTMLElement {
  return chart({ id: "timeseries", title: "Over time", draw: (frame) => draw(record, frame) }, context);
}

/** The panels that a record has data for. */
export function timePanels(record: RunRecord): TimePanel[] {
  const { series, usage_series: usage } = record;
  const seconds = series.slice_ns / SECOND;
  const over = (values: number[], of: (value: number) => number | null, start: number, each: number): [number, number | null][] =>
    values.map((value, i) => [start + (i + 0.5) * each, of(value)]);
  const rate = (values: number[]) => over(values, (count) => count / seconds, 0, seconds);
  // A slice without an arrival has no latency; the record says 0.
  const time = (values: number[]) => over(values, (ns) => (ns > 0 ? ns : null), 0, seconds);
  const used = (values: number[] | undefined) =>
    usage && values ? over(values, (value) => value, usage.start_ns / SECOND, usage.slice_ns / SECOND) : [];
  const all: TimePanel[] = [
    { name: "messages", unit: "per_s", traces: [
      { name: "sent", colour: "muted", dash: [4, 3], points: rate(series.sent) },
      { name: "delivered", colour: "accent", points: rate(series.delivered) },
    ] },
    { name: "latency", unit: "ns", traces: [
      { name: "p50", colour: "accent", points: time(series.latency_p50_ns) },
      { name: "p99", colour: "ink", points: time(series.latency_p99_ns) },
      { name: "max", colour: "muted", dash: [2, 2], points: time(series.latency_max_ns) },
    ] },
    { name: "processors", unit: "cores", traces: [
      { name: "server", colour: "accent", points: used(usage?.server?.cpu_cores) },
      { name: "generator", colour: "muted", dash: [4, 3], points: used(usage?.generator?.cpu_cores) },
    ] },
    { name: "memory", unit: "bytes", traces: [
      { name: "server", colour: "accent", points: used(usage?.server?.rss_bytes) },
      { name: "generator", colour: "muted", dash: [4, 3], points: used(usage?.generator?.rss_bytes) },
    ] },
  ];
  return all
    .map((panel) => ({ ...panel, traces: panel.traces.filter(({ points }) => points.some(([, value]) => value !== null)) }))
    .filter(({ traces }) => traces.length > 0);
}

/** A stretch of time with a name, s. */
interface Span {
  name: string;
  from: number;
  to: number;
  kind: "phase" | "fault";
}

function spans(record: RunRecord): Span[] {
  const { phases, window_ns: window } = record;
  const found: Span[] = [];
  if (phases && phases.warmup_ns > 0) found.push({ name: "warm-up", from: -phases.warmup_ns / SECOND, to: 0, kind: "phase" });
  if (phases && phases.drain_ns > 0) found.push({ name: "drain", from: window / SECOND, to: (window + phases.drain_ns) / SECOND, kind: "phase" });
  for (const { what, who, at_ns, until_ns } of record.fault_log ?? []) {
    if (at_ns === null) continue;
    found.push({ name: label(`${what} ${who}`, 24), from: at_ns / SECOND, to: (until_ns ?? at_ns) / SECOND, kind: "fault" });
  }
  return found;
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
    caption: ["Each point is a slice of time. Latency from the intended time of sending, of what arrived in the slice. Shaded: warm-up, drain and faults."],
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
