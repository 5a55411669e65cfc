/** Axes of numbers. A chart draws positions, `to(value)`, on a plain axis and
 *  labels them by `from`: so a logarithmic axis has ticks where they are wanted
 *  and need not end at a power of ten. */
export interface Scale {
  log: boolean;
  /** Ends and ticks, as values. */
  min: number;
  max: number;
  ticks: number[];
  /** A value's position. */
  to(value: number): number;
  /** A position's value. */
  from(position: number): number;
}

/** Decades from which on an axis is logarithmic by itself. */
const LOG_DECADES = 1.5;
const LINEAR_TICKS = 5;

/** Whether values span so much that a linear axis would hide the small ones. */
export function spansDecades(values: number[]): boolean {
  const positive = values.filter((value) => value > 0 && Number.isFinite(value));
  if (positive.length < 2) return false;
  return Math.log10(extreme(positive, Math.max) / extreme(positive, Math.min)) >= LOG_DECADES;
}

/** An axis that holds all the values; `fromZero` where it is linear. */
export function scale(values: number[], log: boolean, fromZero = true): Scale {
  const finite = values.filter(Number.isFinite);
  return log ? logarithmic(finite.filter((value) => value > 0)) : linear(finite, fromZero);
}

function linear(values: number[], fromZero: boolean): Scale {
  let low = values.length > 0 ? extreme(values, Math.min) : 0;
  let high = values.length > 0 ? extreme(values, Math.max) : 1;
  if (fromZero) [low, high] = [Math.min(0, low), Math.max(0, high)];
  if (high === low) high = low + (Math.abs(low) || 1);
  const step = niceStep((high - low) / LINEAR_TICKS);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => tidy((first + i) * step));
  const identity = (value: number) => value;
  return { log: false, min: ticks[0]!, max: ticks.at(-1)!, ticks, to: identity, from: identity };
}

function logarithmic(values: number[]): Scale {
  const low = values.length > 0 ? extreme(values, Math.min) : 1;
  const high = values.length > 0 ? extreme(values, Math.max) : 10;
  const decades = Math.log10(high / low);
  const steps = decades <= 2.2 ? [1, 2, 5] : decades <= 3.5 ? [1, 3] : [1];
  const every = decades > 9 ? 2 : 1;
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 3 }, (_, i) => Math.floor(Math.log10(low)) - 1 + i);
  const at = (steps: number[], powers: number[]) => powers.flatMap((power) => steps.map((step) => tidy(step * 10 ** power)));
  const all = at(steps, powers.filter((power) => power % every === 0));
  // The ends are finer than the ticks, so that no chart is half empty.
  const ends = at([1, 2, 5], powers);
  const min = ends.findLast((tick) => tick <= low * (1 + 1e-9)) ?? low;
  const max = ends.find((tick) => tick >= high * (1 - 1e-9) && tick > min) ?? high;
  return {
    log: true,
    min,
    max,
    ticks: all.filter((tick) => tick >= min && tick <= max),
    to: (value) => Math.log10(value),
    from: (position) => 10 ** position,
  };
}

/** The same axis with a margin at its ends, a share of its length, for marks that
 *  stand on the first and the last value. */
export function withMargin(of: Scale, low: number, high: number, share = 0.03): Scale {
  const [from, to] = [of.to(low), of.to(high)];
  const room = (to - from || 1) * share;
  return { ...of, min: of.from(from - room), max: of.from(to + room), ticks: of.ticks.filter((tick) => tick >= low && tick <= high) };
}

/** 1, 2 or 5 times a power of ten, at least `least`. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return tidy(power * ([1, 2, 5, 10].find((step) => step * power >= least * (1 - 1e-9)) ?? 10));
}

/** Without the last digits that sums and powers leave behind. */
function tidy(value: number): number {
  return Number(value.toPrecision(12));
}

/** Like `Math.max(...values)`, for lists of any length. */
function extreme(values: number[], of: (a: number, b: number) => number): number {
  return values.reduce((a, b) => of(a, b));
}

/** Where a quantile stands on an axis of nines: 0 at 0 %, 1 at 90 %, 2 at 99 %. */
export function nines(quantile: number): number {
  return Math.log10(1 / (1 - quantile));
}

/** `99.9 %`, of a position on the axis of nines. */
export function ninesLabel(position: number): string {
  const decimals = Math.max(0, Math.ceil(position - 1e-9) - 2);
  return `${((1 - 10 ** -position) * 100).toFixed(decimals)} %`;
}
