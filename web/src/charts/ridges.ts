import { quantity } from "../format";
import { quotable } from "../context";
import type { Cell, LatencyKind } from "../model";
import { axis, tick } from "./axes";
import { tooltip, type Drawing, type Frame } from "./chart";
import { label } from "./clean";
import { COUNTED } from "./percentiles";
import { scale } from "./scale";
import { entry, verdict, type Tip } from "./tip";

export interface Ridge {
  cell: Cell;
  index: number;
  kind: LatencyKind;
  /** Whether it stands beside the one that was chosen. */
  beside: boolean;
  distribution: { first: number; shares: number[] };
}

const ROW_HEIGHT = 46;
const ABOVE = 34;
const BELOW = 46;
/** How far the highest peak reaches, in rows. */
const PEAK = 1.25;

/** Where the messages' latencies lie: a row a system, all to the same scale. */
export function ridges(frame: Frame, all: Ridge[], binsPerDecade: number): Pick<Drawing, "option" | "height" | "table"> {
  const { theme, width } = frame;
  const shown = all.filter(({ cell }) => !frame.hidden.has(cell.system));
  const systems = [...new Set(shown.map(({ cell }) => cell.system))];
  const edge = (bin: number) => 10 ** (bin / binsPerDecade);
  const x = scale(shown.flatMap(({ distribution: { first, shares } }) => [edge(first), edge(first + shares.length)]), true);
  const highest = Math.max(1e-9, ...shown.flatMap(({ distribution }) => distribution.shares));
  const narrow = width < 520;
  const names = Math.min(narrow ? 96 : 150, 24 + 7 * Math.max(0, ...systems.map((system) => label(system).length)));
  const height = ABOVE + Math.max(1, systems.length) * ROW_HEIGHT + BELOW;
  const series = shown.map(({ cell, index, kind, beside, distribution }) => {
    const base = systems.length - 1 - systems.indexOf(cell.system);
    const look = theme.look(cell.system);
    const weak = !quotable(cell, "latency_p99_ns") && !(cell.status === "valid");
    const { first, shares } = distribution;
    // Steps: each bin is as wide as it is, and nothing is smoothed.
    const steps = shares.flatMap((share, k) => [edge(first + k), edge(first + k + 1)].map((at) => ({
      value: [x.to(at), base + (share / highest) * PEAK], cell: index, tip: binTip(cell, kind, edge(first + k), edge(first + k + 1), share),
    })));
    const foot = (at: number) => ({ value: [x.to(at), base] });
    return {
      type: "line",
      symbol: "none",
      z: 2 + systems.length - base,
      lineStyle: { color: look.colour, width: beside ? 1 : 1.4, type: beside ? [1, 2] : weak ? [3, 2] : "solid" },
      itemStyle: { color: look.colour },
      ...(beside ? {} : { areaStyle: { color: look.colour, opacity: weak ? 0.06 : 0.22, origin: base } }),
      data: [foot(edge(first)), ...steps, foot(edge(first + shares.length))],
    };
  });
  return {
    height,
    option: {
      grid: { left: names, right: 18, top: ABOVE, height: height - ABOVE - BELOW, containLabel: false },
      xAxis: axis(x, theme, "latency", (value) => tick(value, "ns"), { bottom: true }),
      yAxis: {
        type: "value", min: 0, max: Math.max(1, systems.length) - 1 + PEAK,
        axisLine: { show: false },
        axisTick: { show: false, customValues: systems.map((_, i) => i) },
        splitLine: { show: true, lineStyle: { color: theme.line } },
        axisLabel: {
          customValues: systems.map((_, i) => i), color: theme.ink, fontSize: 12, width: names - 12, overflow: "truncate",
          verticalAlign: "bottom",
          formatter: (row: number) => label(systems[systems.length - 1 - row] ?? "", narrow ? 14 : 40),
        },
      },
      series,
      tooltip: { ...tooltip(theme, "axis", nearest), axisPointer: { type: "line", axis: "x", animation: false, lineStyle: { color: theme.muted } } },
    },
    table: {
      columns: ["system", "verdict", "latency from", "from, ns", "to, ns", "share of messages"],
      rows: all.flatMap(({ cell, kind, distribution: { first, shares } }) => shares.flatMap((share, k) => share === 0 ? [] : [[
        label(cell.system), verdict(cell), COUNTED[kind],
        entry(edge(first + k), "ns"), entry(edge(first + k + 1), "ns"), { text: shareWords(share), value: share },
      ]])),
    },
  };
}

function binTip(cell: Cell, kind: LatencyKind, from: number, to: number, share: number): Tip {
  const name = `${label(cell.system)}${kind === "latency" ? "" : `, from ${COUNTED[kind]}`}`;
  return { title: `${quantity(from, "ns")} to ${quantity(to, "ns")}`, rows: [[name, shareWords(share)]] };
}

/** One entry a system of the bins under the pointer. */
function nearest(params: unknown): Tip | null {
  const tips = (params as { data?: { tip?: Tip } }[]).flatMap(({ data }) => (data?.tip ? [data.tip] : []));
  const first = tips[0];
  if (first === undefined) return null;
  const rows = new Map(tips.flatMap(({ rows }) => rows));
  return { title: first.title, rows: [...rows] };
}

function shareWords(share: number): string {
  return share >= 0.001 ? `${(share * 100).toFixed(1)} %` : share === 0 ? "0 %" : "<0.1 %";
}
