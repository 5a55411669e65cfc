import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams } from "echarts";
import { axis } from "./axes";
import { label } from "./clean";
import type { Option } from "./echarts";
import { whisker } from "./lines";
import { outline } from "./mark";
import type { Scale } from "./scale";
import type { Theme } from "./theme";
import type { Tip } from "./tip";

/** A system in a chart of bars. */
export interface Bar {
  system: string;
  cell: number;
  /** Hollow where it is not. */
  valid: boolean;
  /** From zero on, one behind the other; the first in full colour, the second light. */
  parts: number[];
  lo: number | null;
  hi: number | null;
  /** What stands behind the bar. */
  text: string;
  tip: Tip;
}

const ROW_HEIGHT = 30;
const ABOVE = 8;
const BELOW = 46;
const THICKNESS = 13;
const GLYPH = 7;

/** A row a system. On a logarithmic axis, which has no zero for a bar to begin
 *  at, a symbol instead of a bar. */
export function bars(theme: Theme, width: number, rows: Bar[], scale: Scale, name: string, text: (value: number) => string): { option: Option; height: number } {
  const narrow = width < 520;
  const names = Math.min(narrow ? 96 : 150, 24 + 7 * Math.max(0, ...rows.map(({ system }) => label(system).length)));
  const texts = Math.min(narrow ? 110 : 210, 14 + GLYPH * Math.max(0, ...rows.map(({ text }) => text.length)));
  const height = Math.max(1, rows.length) * ROW_HEIGHT;
  const items = rows.map((row, index) => ({ value: [scale.to(total(row)), index], cell: row.cell, tip: row.tip }));
  return {
    height: ABOVE + height + BELOW,
    option: {
      grid: { left: names, right: texts, top: ABOVE, height, containLabel: false },
      xAxis: axis(scale, theme, name, text, { bottom: true }),
      yAxis: {
        type: "category",
        inverse: true,
        data: rows.map((_, index) => String(index)),
        axisLine: { show: !scale.log, lineStyle: { color: theme.muted } },
        axisTick: { show: false },
        axisLabel: {
          color: theme.ink, fontSize: 12, interval: 0, width: names - 12, overflow: "truncate",
          formatter: (index: string) => label(rows[Number(index)]?.system ?? "", narrow ? 14 : 40),
        },
      },
      series: [{
        type: "custom",
        data: items,
        encode: { x: 0, y: 1 },
        cursor: "pointer",
        renderItem: (params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => drawRow(theme, rows[params.dataIndex]!, scale, params, api),
      }],
    },
  };
}

function total(row: Bar): number {
  return row.parts.reduce((sum, part) => sum + part, 0);
}

function drawRow(theme: Theme, row: Bar, scale: Scale, params: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) {
  const index = params.dataIndex;
  const at = (value: number) => (api.coord([scale.to(Math.max(value, scale.min)), index]) as [number, number])[0];
  const middle = (api.coord([scale.to(scale.min), index]) as [number, number])[1];
  const look = theme.look(row.system);
  const filled = row.valid ? look.colour : theme.ground;
  const children: object[] = [];
  const all = total(row);
  if (scale.log) {
    const transform = { x: at(all) - 6, y: middle - 6, scaleX: 1.2, scaleY: 1.2 };
    children.push({ type: "path", ...transform, shape: { pathData: outline(look) }, style: { fill: filled, stroke: look.colour, lineWidth: 1.2 } });
  } else {
    let from = 0;
    row.parts.forEach((part, i) => {
      const shape = { x: at(from), y: middle - THICKNESS / 2, width: Math.max(at(from + part) - at(from), part > 0 ? 1 : 0), height: THICKNESS };
      const style = { fill: filled, fillOpacity: i === 0 ? 0.9 : 0.35, stroke: look.colour, lineWidth: row.valid ? 0.8 : 1.3, ...(row.valid ? {} : { lineDash: [3, 2] }) };
      children.push({ type: "rect", shape, style });
      from += part;
    });
  }
  let end = at(all) + (scale.log ? 7 : 0);
  if (row.lo !== null && row.hi !== null && row.hi > row.lo) {
    children.push(whisker([at(row.lo), middle], [at(row.hi), middle], theme.ink));
    end = Math.max(end, at(row.hi) + 3);
  }
  children.push({
    type: "text",
    style: { x: end + 6, y: middle, text: row.text, fill: theme.ink, font: `12px ${theme.font}`, textVerticalAlign: "middle" },
    silent: true,
  });
  // The whole row answers the pointer, not only what is painted.
  const area = params.coordSys as unknown as { x: number; width: number };
  children.unshift({ type: "rect", shape: { x: area.x, y: middle - ROW_HEIGHT / 2, width: area.width, height: ROW_HEIGHT }, style: { fill: "transparent" } });
  return { type: "group" as const, children } as never;
}
