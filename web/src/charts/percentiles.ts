import { quotable, type Context } from "../context";
import { quantity } from "../format";
import type { Cell, LatencyKind } from "../model";
import { statusWord } from "../words";
import { axis, grid, tick } from "./axes";
import { tooltip, type Drawing, type Frame } from "./chart";
import { label } from "./clean";
import { nines, ninesLabel, scale } from "./scale";
import { entry, verdict, type Tip } from "./tip";

const HEIGHT = 340;

/** A curve of one cell. */
export interface Curve {
  cell: Cell;
  index: number;
  /** ns, or multiples of the floor, by quantile. */
  values: number[];
  /** What it counts from. */
  kind: LatencyKind;
  /** Whether it stands beside the one that was chosen. */
  beside: boolean;
}

/** What a latency counts from, in a word of a table. */
export const COUNTED: Record<LatencyKind, string> = { latency: "due time less generator delay", intended: "due time", service: "actual send time" };

/** A cell's curves: the latency that was chosen, and the headline beside another. */
export function curves(context: Context, cells: Cell[], chosen: LatencyKind, floor: boolean): Curve[] {
  const { result } = context;
  return cells.flatMap((cell) => {
    const index = result.cells.indexOf(cell);
    const floorAt = result.points[cell.point]?.floor ?? null;
    const base = floorAt === null ? undefined : result.cells[floorAt];
    const curve = (kind: LatencyKind, beside: boolean): Curve[] => {
      const values = cell.curves[kind]?.values;
      const below = base?.curves[kind]?.values;
      if (!values || values.length === 0) return [];
      if (!floor) return [{ cell, index, values, kind, beside }];
      if (!below) return [];
      const shared = values.slice(0, below.length).map((value, i) => (below[i]! > 0 ? value / below[i]! : NaN));
      return [{ cell, index, values: shared, kind, beside }];
    };
    return [...curve(chosen, false), ...(chosen === "latency" ? [] : curve("latency", true))];
  });
}

/** Latency by percentile, over an axis that gives each nine the same room. */
export function percentiles(context: Context, frame: Frame, shown: Curve[], floor: boolean): Pick<Drawing, "option" | "height" | "table"> {
  const { theme } = frame;
  const { quantiles } = context.page;
  const unit = floor ? "multiple" : "ns";
  const text = (value: number) => quantity(value, unit);
  const visible = shown.filter(({ cell }) => !frame.hidden.has(cell.system));
  const y = scale(visible.flatMap(({ values }) => values), true);
  const last = Math.max(1, ...visible.map(({ values }) => nines(quantiles[values.length - 1] ?? 0.9)));
  const ticks = [0, nines(0.5), ...Array.from({ length: Math.ceil(last) }, (_, i) => i + 1)].filter((tick) => tick <= last + 1e-9);
  const x = { log: false, min: 0, max: last, ticks, to: (value: number) => value, from: (value: number) => value };
  const series = visible.map(({ cell, index, values, beside }) => {
    const look = theme.look(cell.system);
    const weak = !quotable(cell, "latency_p99_ns") && !(cell.status === "valid");
    return {
      type: "line",
      name: String(index),
      symbol: "none",
      triggerLineEvent: true,
      z: beside ? 2 : 3,
      lineStyle: { color: look.colour, width: beside ? 1 : 1.8, type: beside ? [1, 2] : weak ? [9, 5] : look.dash, opacity: weak ? 0.6 : 1 },
      itemStyle: { color: look.colour },
      data: values.map((value, i) => ({ value: [nines(quantiles[i]!), y.to(value)], cell: index })),
    };
  });
  const tip = (params: unknown): Tip | null => {
    const items = params as { dataIndex: number; seriesIndex: number }[];
    const k = items[0]?.dataIndex;
    if (k === undefined || quantiles[k] === undefined) return null;
    const rows = items
      .map(({ seriesIndex, dataIndex }) => ({ curve: visible[seriesIndex], value: visible[seriesIndex]?.values[dataIndex] }))
      .filter((row): row is { curve: Curve; value: number } => row.curve !== undefined && row.value !== undefined)
      .sort((a, b) => a.value - b.value)
      .map(({ curve, value }): [string, string] => [nameOf(curve), text(value)]);
    return { title: `${quantileWords(quantiles[k])} of messages within`, rows };
  };
  return {
    height: HEIGHT,
    option: {
      grid: grid(34, HEIGHT - 80),
      xAxis: { ...axis(x, theme, "share of messages", ninesLabel, { bottom: true }), axisPointer: { show: true } },
      yAxis: axis(y, theme, floor ? "latency, multiple of the kernel floor" : "latency", (value) => tick(value, unit)),
      series,
      tooltip: tooltip(theme, "axis", tip),
    },
    table: {
      columns: ["system", "verdict", "latency from", "percentile", floor ? "latency, multiple of the floor" : "latency, ns"],
      rows: shown.flatMap(({ cell, values, kind }) => values.flatMap((value, i) =>
        i % 5 === 0 || i === values.length - 1 || i === 3
          ? [[label(cell.system), verdict(cell), COUNTED[kind], quantileWords(quantiles[i]!), entry(value, unit)]]
          : [])),
    },
  };
}

function nameOf({ cell, kind, beside }: Curve): string {
  const name = label(cell.system);
  const word = cell.status === "valid" ? name : `${name} (${statusWord(cell.status)})`;
  return beside ? `${word}, headline` : kind === "latency" ? word : `${word}, from ${COUNTED[kind]}`;
}

function quantileWords(quantile: number): string {
  const decimals = Math.max(1, Math.ceil(nines(quantile) - 1e-9) - 1);
  return `${(quantile * 100).toFixed(decimals).replace(/\.0+$/, "")} %`;
}
