import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from "echarts";
import { quotable } from "../context";
import { NONE, number } from "../format";
import type { Cell, Point, Result } from "../model";
import { distance as words, UNRELIABLE } from "../words";
import { axis, tick } from "./axes";
import { label } from "./clean";
import type { Option } from "./echarts";
import { whisker } from "./lines";
import { outline } from "./mark";
import { scale, withMargin, type Scale } from "./scale";
import type { Theme } from "./theme";
import type { Tip } from "./tip";

/** A system of a point, and how far it is from the best one; factors of at least 1
 *  say how many times as good the best one is. */
export interface Remote {
  /** By index. */
  cell: number;
  system: string;
  /** Ratio of its median to that of the best-looking candidate; below 1 where its
   *  median alone looks better. Null where a median is not positive. */
  ratio: number | null;
  /** Factors between which the best system is better; `most` is null where the
   *  repeats set no upper bound. Null for the winner and those that tie. */
  range: { least: number; most: number | null } | null;
  /** Whether it may be the best: filled in the chart. */
  isCandidate: boolean;
  standing: string;
}

/** Words of cells that are ranked. */
const CANDIDATES = ["winner", "tie", "candidate"];
const RANKED = [...CANDIDATES, "behind"];

/** Returns the figure by which the systems of a point are ranked. */
export function headline({ unthrottled }: { unthrottled: boolean }): string {
  return unthrottled ? "delivered_per_s" : "latency_p50_ns";
}

/** Returns the systems of a point that are ranked, the nearest to the best first;
 *  empty where fewer than two are. */
export function remotes(result: Result, point: Point, better: "lower" | "higher"): Remote[] {
  const key = headline(point);
  const best = point.ranks[key]?.systems[0];
  const ranked = point.cells.filter((index) => RANKED.includes(result.cells[index]!.word));
  const median = (cell: Cell | undefined) => cell?.figures[key]?.[0] ?? 0;
  const goal = median(ranked.map((index) => result.cells[index]!).find(({ system }) => system === best));
  if (best === undefined || ranked.length < 2) return [];
  const found = ranked.map((index): Remote => {
    const cell = result.cells[index]!;
    const own = median(cell);
    const [least, most] = cell.distance ?? [1, null];
    return {
      cell: index, system: cell.system, standing: cell.word,
      ratio: goal > 0 && own > 0 ? (better === "lower" ? own / goal : goal / own) : null,
      range: cell.distance === null ? null : { least, most },
      isCandidate: CANDIDATES.includes(cell.word),
    };
  });
  const far = ({ ratio, isCandidate }: Remote) => [isCandidate ? 0 : 1, ratio ?? Infinity] as const;
  return found.sort((a, b) => far(a)[0] - far(b)[0] || (far(a)[1] === far(b)[1] ? 0 : far(a)[1] - far(b)[1]));
}

/** Room for an arrow behind the largest factor that is known. */
const OPEN_FACTOR = 1.5;
/** Shortest axis: where all systems are alike, their marks stand together. */
const LEAST_END = 1.2;
/** Ticks of axes that are shorter than 1, 2 and 5 can label. */
const FINE: [span: number, ticks: number[]][] = [
  [1.7, [0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]],
  [5, [0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4]],
];

/** Returns a logarithmic axis that holds 1, all ratios and ranges, and room for arrows. */
export function remoteScale(rows: Remote[]): Scale {
  const values = [1, LEAST_END, ...rows.flatMap(({ ratio, range }) => [ratio ?? 1, range?.least ?? 1, range?.most ?? 1])];
  const isOpen = rows.some(({ range }) => range !== null && range.most === null);
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b)) * (isOpen ? OPEN_FACTOR : 1);
  const held = scale([low, high], true);
  const fine = FINE.find(([span]) => high / low <= span)?.[1];
  return withMargin({ ...held, ticks: fine ?? held.ticks }, low, high);
}

const ROW_HEIGHT = 30;
const ABOVE = 8;
const BELOW = 46;
const GLYPH = 6.6;
const ARROW = 7;

/** Draws a row a system: a mark at its ratio, and a line over its range. */
export function remoteRows(theme: Theme, width: number, result: Result, rows: Remote[], name: string, tips: (row: Remote) => Tip): { option: Option; height: number } {
  const narrow = width < 520;
  const names = Math.min(narrow ? 96 : 150, 24 + 7 * Math.max(0, ...rows.map(({ system }) => label(system).length)));
  const texts = rows.map((row) => rowText(row, result.cells[row.cell]!, narrow));
  const right = Math.min(narrow ? 118 : 230, 20 + GLYPH * Math.max(0, ...texts.map((text) => text.length)));
  const height = Math.max(1, rows.length) * ROW_HEIGHT;
  const x = remoteScale(rows);
  return {
    height: ABOVE + height + BELOW,
    option: {
      grid: { left: names, right, top: ABOVE, height, containLabel: false },
      xAxis: axis(x, theme, name, (factor) => tick(factor, "multiple"), { bottom: true }),
      yAxis: {
        type: "category", inverse: true, data: rows.map((_, index) => String(index)), axisLine: { show: false }, axisTick: { show: false },
        axisLabel: { color: theme.ink, fontSize: 12, interval: 0, width: names - 12, overflow: "truncate", formatter: (index: string) => label(rows[Number(index)]?.system ?? "", narrow ? 14 : 40) },
      },
      series: [{
        type: "custom",
        encode: { x: 0, y: 1 },
        cursor: "pointer",
        data: rows.map((row, index) => ({ value: [x.to(row.ratio ?? 1), index], cell: row.cell, tip: tips(row) })),
        markLine: { silent: true, symbol: "none", animation: false, label: { show: false }, lineStyle: { color: theme.ink, width: 1, type: "solid" }, data: [{ xAxis: x.to(1) }] },
        renderItem: (params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => drawRow(theme, rows[params.dataIndex]!, texts[params.dataIndex]!, x, params, api),
      }],
    },
  };
}

/** `1.84× · behind ≥ 1.5×`. */
function rowText(row: Remote, cell: Cell, narrow: boolean): string {
  const ratio = row.ratio === null ? NONE : `${number(row.ratio)}×`;
  if (narrow) return `${ratio} ${row.standing}`;
  const unreliable = quotable(cell, headline(cell)) ? "" : `, ${UNRELIABLE}`;
  return `${ratio} · ${row.standing}${words(cell)}${unreliable}`;
}

function drawRow(theme: Theme, { system, ratio, range, isCandidate }: Remote, text: string, x: Scale, params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) {
  const at = (factor: number) => (api.coord([x.to(factor), params.dataIndex]) as [number, number])[0];
  const y = (api.coord([x.to(1), params.dataIndex]) as [number, number])[1];
  const look = theme.look(system);
  const area = params.coordSys as unknown as { x: number; width: number };
  const end = area.x + area.width;
  const children: object[] = [{ type: "rect", shape: { x: area.x, y: y - ROW_HEIGHT / 2, width: area.width, height: ROW_HEIGHT }, style: { fill: "transparent" } }];
  if (range !== null && range.most !== null && range.most > range.least) children.push(whisker([at(range.least), y], [at(range.most), y], theme.ink));
  if (range !== null && range.most === null) {
    const from = at(range.least);
    const stroke = { stroke: theme.ink, lineWidth: 1.2 };
    children.push(
      { type: "line", shape: { x1: from, y1: y, x2: end - 1, y2: y }, style: stroke },
      { type: "line", shape: { x1: from, y1: y - 3, x2: from, y2: y + 3 }, style: stroke },
      { type: "polygon", shape: { points: [[end, y], [end - ARROW, y - 4], [end - ARROW, y + 4]] }, style: { fill: theme.ink } },
    );
  }
  if (ratio !== null) {
    const place = { x: at(ratio) - 6, y: y - 6, scaleX: 1.2, scaleY: 1.2 };
    children.push({ type: "path", ...place, shape: { pathData: outline(look) }, style: { fill: isCandidate ? look.colour : theme.ground, stroke: look.colour, lineWidth: 1.3 } });
  }
  children.push({ type: "text", silent: true, style: { x: end + 8, y, text, fill: theme.ink, font: `12px ${theme.font}`, textVerticalAlign: "middle" } });
  return { type: "group" as const, children } as never;
}
