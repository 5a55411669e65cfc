import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from "echarts";
import { axis, grid } from "./axes";
import type { Frame } from "./chart";
import type { Option } from "./echarts";
import { symbol } from "./mark";
import type { Scale } from "./scale";
import type { Theme } from "./theme";
import type { Tip } from "./tip";

/** A cell in a chart of lines. */
export interface Spot {
  x: number;
  y: number;
  lo: number | null;
  hi: number | null;
  /** Hollow where it is not. */
  valid: boolean;
  cell: number;
  tip: Tip;
  /** Whether it is marked by a ring. */
  ringed?: boolean;
  /** What is written beside it. */
  name?: string;
}

export interface Line {
  system: string;
  spots: Spot[];
  /** Published by others: hollow marks with a dot within, that no line joins. */
  foreign?: boolean;
  /** Whether its spots stand at words, in no order: no line joins them. */
  apart?: boolean;
}

export interface Panel {
  name: string;
  lines: Line[];
  scale: Scale;
  text(value: number): string;
  /** px */
  height: number;
  /** Straight lines for orientation, in values of the axes. */
  guides?: { from: [number, number]; to: [number, number]; text: string }[];
}

export interface Across {
  name: string;
  scale: Scale;
  text(value: number): string;
  ticks?: { value: number; text: string }[];
}

/** What a chart of lines leaves free at its sides, px. */
const SIDES = 76;
/** px */
const DODGE = 3;
/** What the outermost are apart at most, as a share of the width. */
const DODGED_MAX = 0.04;
const ABOVE = 34;
const BELOW = 42;
const BETWEEN = 34;
const SIZE = 9;
const FOREIGN_SIZE = 11;
const RING_SIZE = 17;

/** Panels above each other over one horizontal axis. */
export function panels({ theme, width }: Pick<Frame, "theme" | "width">, across: Across, stack: Panel[]): { option: Option; height: number } {
  const unit = (across.scale.to(across.scale.max) - across.scale.to(across.scale.min)) / Math.max(1, width - SIDES);
  let top = ABOVE;
  const grids: Option[] = [];
  const xs: Option[] = [];
  const ys: Option[] = [];
  const series: Option[] = [];
  stack.forEach((panel, index) => {
    const last = index === stack.length - 1;
    grids.push(grid(top, panel.height));
    top += panel.height + (last ? BELOW : BETWEEN);
    xs.push(axis(across.scale, theme, last ? across.name : "", across.text, {
      grid: index, bottom: true, labels: last, ...(across.ticks ? { ticks: across.ticks } : {}),
    }));
    ys.push(axis(panel.scale, theme, panel.name, panel.text, { grid: index }));
    for (const guide of panel.guides ?? []) series.push(guideSeries(theme, across.scale, panel, guide, index));
    const apart = dodges(panel, width - SIDES);
    for (const line of panel.lines) {
      const shift = (apart.get(line.system) ?? 0) * unit;
      const shifted = { ...across.scale, to: (value: number) => across.scale.to(value) + shift };
      series.push(...lineSeries(theme, shifted, panel.scale, line, index));
    }
  });
  return { option: { grid: grids, xAxis: xs, yAxis: ys, series }, height: top };
}

/** How far each system is moved aside, px, so that intervals at the same place
 *  can be told apart; not at all where there are none, or a diagonal to lie on. */
function dodges({ lines, guides }: Panel, room: number): Map<string, number> {
  const wide = lines.some(({ spots }) => spots.some(({ lo, hi }) => lo !== null && hi !== null && hi > lo));
  if (!wide || guides !== undefined) return new Map();
  const systems = [...new Set(lines.map(({ system }) => system))];
  const step = Math.min(DODGE, (DODGED_MAX * room) / Math.max(1, systems.length - 1));
  return new Map(systems.map((system, i) => [system, (i - (systems.length - 1) / 2) * step]));
}

function lineSeries(theme: Theme, x: Scale, y: Scale, line: Line, index: number): Option[] {
  const look = theme.look(line.system);
  const spots = line.spots.filter((spot) => drawable(spot, x, y)).sort((a, b) => a.x - b.x);
  const at = ({ x: across, y: up }: Spot) => [x.to(across), y.to(up)];
  const place = { xAxisIndex: index, yAxisIndex: index };
  const marks = {
    ...place,
    type: "scatter",
    symbol: symbol(look),
    symbolSize: line.foreign ? FOREIGN_SIZE : SIZE,
    cursor: "pointer",
    z: 4,
    data: spots.map((spot) => ({
      value: at(spot),
      cell: spot.cell,
      tip: spot.tip,
      ...(spot.name ? { label: nameLabel(theme, x, spot) } : {}),
      itemStyle: spot.valid && !line.foreign
        ? { color: look.colour, borderColor: theme.ground, borderWidth: 1 }
        : { color: theme.ground, borderColor: look.colour, borderWidth: line.foreign ? 1.1 : 1.6 },
    })),
  };
  const rings = spots.filter((spot) => spot.ringed).map((spot) => ({ value: at(spot), cell: spot.cell, tip: spot.tip }));
  const found: Option[] = [whiskers(look.colour, spots, x, y, index), marks];
  if (rings.length > 0) {
    const itemStyle = { color: "transparent", borderColor: look.colour, borderWidth: 1.5 };
    found.push({ ...place, type: "scatter", symbol: "circle", symbolSize: RING_SIZE, itemStyle, z: 3, data: rings });
  }
  if (line.foreign) {
    found.push({ ...place, type: "scatter", symbol: "circle", symbolSize: 3, itemStyle: { color: look.colour }, silent: true, z: 5, data: spots.map(at) });
    return found;
  }
  if (line.apart) return found;
  const stroke = { ...place, type: "line", symbol: "none", silent: true, z: 2 };
  const solid = spots.map((spot) => (spot.valid ? at(spot) : [at(spot)[0], null]));
  found.push({ ...stroke, lineStyle: { color: look.colour, width: 1.6, type: look.dash }, connectNulls: false, data: solid });
  if (spots.some((spot) => !spot.valid)) {
    found.push({ ...stroke, lineStyle: { color: look.colour, width: 1, type: [1, 4], opacity: 0.7 }, data: spots.map(at) });
  }
  return found;
}

/** The name of a spot beside it, on the side where there is more room. */
function nameLabel(theme: Theme, x: Scale, { name, x: across }: Spot): Option {
  const isLeft = x.to(across) - x.to(x.min) < x.to(x.max) - x.to(across);
  return { show: true, position: isLeft ? "right" : "left", formatter: () => name, color: theme.muted, fontSize: 11 };
}

function drawable(spot: Spot, x: Scale, y: Scale): boolean {
  return Number.isFinite(x.to(spot.x)) && Number.isFinite(y.to(spot.y));
}

/** The 95 % interval of each spot as a line with ends. */
function whiskers(colour: string, spots: Spot[], x: Scale, y: Scale, index: number): Option {
  const data = spots
    .filter(({ lo, hi }) => lo !== null && hi !== null && hi > lo)
    .map((spot) => [x.to(spot.x), y.to(Math.max(spot.lo!, y.log ? y.min : -Infinity)), y.to(spot.hi!)]);
  return {
    type: "custom",
    xAxisIndex: index,
    yAxisIndex: index,
    silent: true,
    clip: true,
    z: 2,
    encode: { x: 0, y: [1, 2] },
    data,
    renderItem: (_: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => {
      const [across, low] = api.coord([api.value(0), api.value(1)]) as [number, number];
      const [, high] = api.coord([api.value(0), api.value(2)]) as [number, number];
      return whisker([across, low], [across, high], colour);
    },
  };
}

/** A line with short ends, between two points on the screen. */
export function whisker([x1, y1]: [number, number], [x2, y2]: [number, number], colour: string) {
  const upright = x1 === x2;
  const [dx, dy] = upright ? [3, 0] : [0, 3];
  const stroke = (x1: number, y1: number, x2: number, y2: number) =>
    ({ type: "line" as const, shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 1.2 } });
  return {
    type: "group" as const,
    children: [stroke(x1, y1, x2, y2), stroke(x1 - dx, y1 - dy, x1 + dx, y1 + dy), stroke(x2 - dx, y2 - dy, x2 + dx, y2 + dy)],
  };
}

function guideSeries(theme: Theme, x: Scale, panel: Panel, guide: NonNullable<Panel["guides"]>[number], index: number): Option {
  const at = ([across, up]: [number, number]) => [x.to(across), panel.scale.to(up)];
  const end = { show: true, formatter: guide.text, color: theme.muted, fontSize: 11 };
  return {
    type: "line",
    xAxisIndex: index,
    yAxisIndex: index,
    silent: true,
    symbol: "none",
    z: 1,
    lineStyle: { color: theme.muted, width: 1, type: [4, 3] },
    data: [{ value: at(guide.from) }, { value: at(guide.to), symbol: "circle", symbolSize: 0.01, label: { ...end, position: "left", offset: [0, 16] } }],
    showSymbol: true,
  };
}
