import type { Estimate, Unit } from "./model";

const TIMES: [number, string][] = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
const COUNTS: [number, string][] = [[1, ""], [1e3, "k"], [1e6, "M"], [1e9, "G"]];
const BYTES: [number, string][] = [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"]];

/** What stands where there is no figure. */
export const NONE = "–";

/** Three significant digits, no exponent down to a millionth. */
export function number(value: number): string {
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(3)))));
  if (exponent < -6) return value.toExponential(2);
  return Number(value.toPrecision(3)).toFixed(Math.max(0, 2 - exponent));
}

/** With the largest unit that leaves at least 1, after rounding. */
function scaled(value: number, units: [number, string][], space: string): string {
  const rounded = Math.abs(Number(value.toPrecision(3)));
  const [factor, unit] = units.findLast(([factor]) => rounded >= factor) ?? units[0]!;
  const text = factor === 1 && Number.isInteger(value) ? String(value) : number(value / factor);
  return unit === "" ? text : text + space + unit;
}

/** A share as per cent, never rounded up: what is not all is below 100 %. */
export function percent(share: number): string {
  const decimals = share >= 1 ? 0 : share >= 0.999 ? 3 : share >= 0.99 ? 2 : 1;
  const scale = 10 ** decimals;
  const floored = Math.floor(share * 100 * scale + 1e-9) / scale;
  return share < 1 && floored >= 100 ? "<100 %" : `${floored.toFixed(decimals)} %`;
}

/** A value with its unit and three digits. */
export function quantity(value: number, unit: Unit): string {
  if (!Number.isFinite(value)) return NONE;
  switch (unit) {
    case "ns": return scaled(value, TIMES, " ");
    case "per_s": return `${scaled(value, COUNTS, "")}/s`;
    case "bytes_per_s": return `${scaled(value, BYTES, " ")}/s`;
    case "bytes": return scaled(value, BYTES, " ");
    case "share": return percent(value);
    case "count": return scaled(value, COUNTS, "");
    case "cores": return number(value);
    case "multiple": return `${number(value)}×`;
  }
}

/** `12.3 µs (12.0 to 12.9)`. */
export function withInterval(estimate: Estimate, unit: Unit): string {
  const [value, lo, hi] = estimate;
  if (lo === null || hi === null) return quantity(value, unit);
  return `${quantity(value, unit)} (${quantity(lo, unit)} to ${quantity(hi, unit)})`;
}
