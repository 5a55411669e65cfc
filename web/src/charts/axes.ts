import { quantity } from "../format";
import type { Unit } from "../model";
import type { Option } from "./echarts";
import type { Scale } from "./scale";
import type { Theme } from "./theme";

const FONT_SIZE = 11;

/** A value at an axis, where zeros at the end say nothing: `10 ms`, not `10.0 ms`. */
export function tick(value: number, unit: Unit): string {
  return quantity(value, unit).replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");
}

/** An axis of numbers, labelled where the scale has ticks or where it is told. */
export function axis(
  scale: Scale,
  theme: Theme,
  name: string,
  text: (value: number) => string,
  more: { grid?: number; ticks?: { value: number; text: string }[]; bottom?: boolean; labels?: boolean } = {},
): Option {
  const marks = more.ticks?.map(({ value, text }) => ({ at: scale.to(value), text }))
    ?? scale.ticks.map((value) => ({ at: scale.to(value), text: text(value) }));
  const positions = marks.map(({ at }) => at);
  const shown = new Map(marks.map(({ at, text }) => [at, text]));
  return {
    type: "value",
    gridIndex: more.grid ?? 0,
    min: scale.to(scale.min),
    max: scale.to(scale.max),
    ...named(theme, name, more.bottom ?? false),
    axisLine: { show: more.bottom ?? false, onZero: false, lineStyle: { color: theme.muted } },
    axisTick: { show: more.bottom ?? false, customValues: positions, lineStyle: { color: theme.muted } },
    axisLabel: {
      show: more.labels ?? true,
      customValues: positions,
      color: theme.muted,
      fontSize: FONT_SIZE,
      hideOverlap: true,
      formatter: (at: number) => shown.get(at) ?? text(scale.from(at)),
    },
    splitLine: { show: true, lineStyle: { color: theme.line, width: 1, opacity: more.bottom ? 0.4 : 0.8 } },
  };
}

/** A name above a vertical axis, reading from left to right, or below a
 *  horizontal one. */
export function named(theme: Theme, name: string, bottom: boolean): Option {
  const style = { color: theme.muted, fontSize: FONT_SIZE };
  return bottom
    ? { name, nameLocation: "middle", nameGap: 26, nameTextStyle: style }
    : { name, nameLocation: "end", nameGap: 10, nameTextStyle: { ...style, align: "left", padding: [0, 0, 0, -46] } };
}

/** Where a panel stands within a chart, px. */
export function grid(top: number, height: number, right = 18): Option {
  return { left: 58, right, top, height, containLabel: false };
}
