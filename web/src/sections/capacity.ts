import { axis, grid, tick } from "../charts/axes";
import { chart, type Drawing, type Frame } from "../charts/chart";
import { label } from "../charts/clean";
import { isLog, logToggle } from "../charts/controls";
import type { Option } from "../charts/echarts";
import { answer, kneePanels, load, marksOf, SHAPES, type KneeMark, type KneePanel, type MarkShape } from "../charts/knees";
import { scale, spansDecades, withMargin, type Scale } from "../charts/scale";
import type { Entry, Table } from "../charts/table";
import type { Theme } from "../charts/theme";
import { entry, type Tip } from "../charts/tip";
import type { Context, Section } from "../context";
import { h, type Child } from "../dom";
import { NONE, quantity } from "../format";
import type { Capacity, CapacityFigures } from "../model";
import { plainTable } from "../table";
import { clean } from "../text";
import { standingWord } from "../words";

const ABOVE = 62;
const BETWEEN = 36;
const BELOW = 46;
const PANEL_HEIGHT = 130;
/** What the interval's name stands above the panel, so that it is clear of the axis's own. */
const NAME_GAP = 24;
const SIZE = 9;
const RING_SIZE = 17;

/** How far an objective holds: for each search its answer and the curve through
 *  the knee. */
export const capacity: Section = {
  id: "capacity",
  title: "Capacity",
  has: ({ result }) => result.capacities.length > 0,
  render(context) {
    const { capacities } = context.result;
    return h(
      "div",
      { class: "capacities" },
      capacities.length > 1 && overview(capacities),
      capacities.map((search, index) => h("div", null, h("p", { class: "prose" }, clean(search.sentence, 2_000)), kneeChart(context, search, index))),
    );
  },
};

function overview(capacities: Capacity[]): HTMLElement {
  const rows = capacities.map((search): Child[] => [
    clean(search.label, 120),
    answer(search),
    search.limited_by === null ? NONE : clean(search.limited_by, 40),
    search.confirmed ? "yes" : "no",
    clean(standingWord(search.standing), 20),
  ]);
  return plainTable("The capacity of each", ["system and workload", { label: "holds up to", numeric: true }, "limited by", "held at full length", "verdict"], rows);
}

function kneeChart(context: Context, search: Capacity, index: number): HTMLElement {
  const id = `capacity-${index}`;
  const wide = spansDecades(search.curve.map(({ load }) => load));
  return chart(
    {
      id,
      title: label(`Through the knee: ${search.label}`, 120),
      controls: () => [logToggle(context, id, wide)],
      draw: (frame) => draw(frame, search, isLog(context, id, wide)),
    },
    context,
  );
}

function draw({ theme, width }: Frame, search: Capacity, log: boolean): Drawing | string {
  const panels = kneePanels(search);
  const marks = marksOf(search);
  if (panels.length === 0) return "No step was made of which there is anything to show.";
  const loads = [...search.curve.map(({ load }) => load), search.lo ?? NaN, search.hi ?? NaN].filter(Number.isFinite);
  const x = withMargin(scale(loads, log, false), Math.min(...loads), Math.max(...loads), 0.04);
  const series = panels.flatMap((panel, at) => panelSeries(theme, width, search, panel, at, x, marks));
  const top = (at: number) => ABOVE + at * (PANEL_HEIGHT + BETWEEN);
  const last = (at: number) => at === panels.length - 1;
  return {
    option: {
      grid: panels.map((_, at) => grid(top(at), PANEL_HEIGHT)),
      xAxis: panels.map((_, at) => axis(x, theme, last(at) ? label(search.load, 80) : "", (value) => tick(value, search.unit), { grid: at, bottom: true, labels: last(at) })),
      yAxis: panels.map((panel, at) => axis(panelScale(search, panel, marks), theme, panelName(panel), (value) => tick(value, panel.unit), { grid: at })),
      series,
    },
    height: top(panels.length) - BETWEEN + BELOW,
    systems: [],
    table: table(search, marks),
    caption: [caption(search, marks)],
  };
}

function panelName({ name, lines }: KneePanel): string {
  return `${name}: ${lines.map(({ name, marked }) => `${name}${marked ? "" : " (dashed)"}`).join(", ")}`;
}

function panelScale({ curve }: Capacity, { lines, unit }: KneePanel, marks: KneeMark[]): Scale {
  const all: CapacityFigures[] = [...curve, ...marks.map(({ figures }) => figures)];
  const values = lines.flatMap(({ key }) => all.flatMap((figures) => figures[key] ?? []));
  return scale(values, unit === "ns" && spansDecades(values));
}

function panelSeries(theme: Theme, width: number, search: Capacity, panel: KneePanel, at: number, x: Scale, marks: KneeMark[]): Option[] {
  const y = panelScale(search, panel, marks);
  const place = { xAxisIndex: at, yAxisIndex: at };
  const spot = (figures: CapacityFigures, key: keyof CapacityFigures): [number, number] | null => {
    const value = figures[key];
    return value === null || (y.log && value <= 0) ? null : [x.to(figures.load), y.to(value)];
  };
  const found: Option[] = panel.lines.map(({ key, marked }) => ({
    ...place, type: "line", symbol: "none", silent: true, z: 2, connectNulls: true,
    lineStyle: { color: marked ? theme.ink : theme.muted, width: marked ? 1.4 : 1.2, type: marked ? "solid" : [4, 3] },
    data: search.curve.flatMap((figures) => { const it = spot(figures, key); return it === null ? [] : [it]; }),
    ...(marked ? interval(theme, width, search, x, at === 0) : {}),
  }));
  const own = panel.lines.find(({ marked }) => marked)!;
  const shown = marks.flatMap((mark) => { const value = spot(mark.figures, own.key); return value === null ? [] : [{ mark, value }]; });
  found.push({
    ...place, type: "scatter", z: 4, symbolSize: SIZE,
    data: shown.map(({ mark, value }) => ({
      value, symbol: `path://${SHAPES[mark.shape].path}`, tip: tipOf(search, mark), itemStyle: style(theme, mark.shape),
      ...(mark.cell === null ? {} : { cell: mark.cell, cursor: "pointer" }),
    })),
  });
  const rings = shown.filter(({ mark }) => mark.confirms).map(({ value }) => value);
  if (rings.length > 0) {
    found.push({ ...place, type: "scatter", symbol: "circle", symbolSize: RING_SIZE, silent: true, z: 3, itemStyle: { color: "transparent", borderColor: theme.ink, borderWidth: 1.4 }, data: rings });
  }
  return found;
}

function style(theme: Theme, shape: MarkShape): Option {
  const colour = { held: theme.accent, failed: theme.bad, none: theme.muted, mixed: theme.warn }[shape];
  return SHAPES[shape].hollow ? { color: theme.ground, borderColor: colour, borderWidth: 1.6 } : { color: colour, borderColor: theme.ground, borderWidth: 0.6 };
}

/** Where the edge lies: its interval shaded between two lines, and named above the
 *  first panel. */
function interval(theme: Theme, width: number, search: Capacity, x: Scale, named: boolean): Option {
  const { estimate, lo, hi, lower_bound: isBound } = search;
  if (estimate === null || lo === null) return {};
  const line = { color: theme.accent, width: 1, type: [5, 3] };
  // The name stays within the drawing at either end.
  const share = (x.to(estimate) - x.to(x.min)) / (x.to(x.max) - x.to(x.min) || 1);
  const text = width < 420 ? (isBound ? `≥ ${load(search, lo)}` : load(search, estimate)) : answer(search);
  const name = { show: named, position: "end", formatter: text, color: theme.accent, fontSize: 11, distance: NAME_GAP, align: share > 0.6 ? "right" : share < 0.3 ? "left" : "center" };
  const at = (value: number, show: boolean) => ({ xAxis: x.to(value), label: show ? name : { show: false }, lineStyle: line });
  const area = isBound || hi === null ? {} : { markArea: { silent: true, itemStyle: { color: theme.accent, opacity: 0.14 }, label: { show: false }, data: [[{ xAxis: x.to(lo) }, { xAxis: x.to(hi) }]] } };
  return {
    ...area,
    markLine: { silent: true, symbol: "none", animation: false, data: isBound || hi === null ? [at(lo, true)] : [at(lo, false), at(hi, true)] },
  };
}

function tipOf(search: Capacity, { figures, said, step }: KneeMark): Tip {
  const shown = (value: number | null, unit: Parameters<typeof quantity>[1]) => (value === null ? NONE : quantity(value, unit));
  const rows: [string, string][] = [
    ["the objective", label(said, 160)],
    ["offered", shown(figures.offered_per_s, "per_s")],
    ["delivered", shown(figures.delivered_per_s, "per_s")],
    ["p50", shown(figures.p50_ns, "ns")],
    ["p99", shown(figures.p99_ns, "ns")],
    ["server, processors", shown(figures.server_cpu_cores, "cores")],
    ["server, memory", shown(figures.server_rss_bytes, "bytes")],
  ];
  if (step !== null) rows.push(["window", quantity(step.window_s * 1e9, "ns")]);
  return { title: load(search, figures.load), rows };
}

function table(search: Capacity, marks: KneeMark[]): Table {
  const rows = marks.map(({ figures, said, step }): Entry[] => [
    entry(figures.load, search.unit),
    label(said, 200),
    entry(figures.offered_per_s, "per_s"),
    entry(figures.delivered_per_s, "per_s"),
    entry(figures.p50_ns, "ns"),
    entry(figures.p99_ns, "ns"),
    entry(figures.server_cpu_cores, "cores"),
    entry(figures.server_rss_bytes, "bytes"),
    entry(step === null ? null : step.window_s * 1e9, "ns"),
  ]);
  return { columns: ["load", "the objective", "offered", "delivered", "latency p50", "latency p99", "server, processors", "server, memory", "window"], rows };
}

function caption(search: Capacity, marks: KneeMark[]): string {
  const has = (shape: MarkShape) => marks.some((mark) => mark.shape === shape);
  const words: Record<MarkShape, string> = {
    held: "the objective held",
    failed: "it did not hold",
    none: "the step shows nothing about the system and was repeated",
    mixed: "it held in some steps only",
  };
  const shapes = (Object.keys(words) as MarkShape[]).filter(has).map((shape) => `${SHAPES[shape].name}: ${words[shape]}`);
  const each = search.steps.length > 0 ? "a step of the search" : "the median of the steps at a load, which are too many to be shown one by one";
  const ring = marks.some(({ confirms }) => confirms) ? " Ringed: the run of full length." : "";
  const { estimate, lower_bound: isBound } = search;
  const where = estimate === null ? "" : isBound ? " Dashed upright: what it holds at least." : ` Shaded: where it ceases to hold (${Math.round(search.level * 100)} % interval).`;
  return `Each mark is ${each} (${shapes.join("; ")}). Lines: the median at each load.${ring}${where} Objective: ${label(search.until, 120)}.`;
}
