import { NONE, quantity } from "../format";
import type { Capacity, CapacityFigures, CapacityStep, StepOutcome, Unit } from "../model";

/** What a mark says by its shape: the objective held, it did not, or the step says
 *  nothing of the system; of several steps in one mark, that they do not agree. */
export type MarkShape = "held" | "failed" | "none" | "mixed";

/** Outlines on a ground of 10 by 10. */
export const SHAPES: Record<MarkShape, { path: string; name: string; hollow: boolean }> = {
  held: { path: "M5 0A5 5 0 1 0 5 10A5 5 0 1 0 5 0Z", name: "disc", hollow: false },
  failed: { path: "M1.6 0L5 3.4L8.4 0L10 1.6L6.6 5L10 8.4L8.4 10L5 6.6L1.6 10L0 8.4L3.4 5L0 1.6Z", name: "cross", hollow: false },
  none: { path: "M5 0L10 5L5 10L0 5Z", name: "hollow diamond", hollow: true },
  mixed: { path: "M.6 .6H9.4V9.4H.6Z", name: "hollow square", hollow: true },
};

/** A step in the chart, or all steps at a load where they are too many. */
export interface KneeMark {
  figures: CapacityFigures;
  shape: MarkShape;
  /** Whether it is the run of full length. */
  confirms: boolean;
  /** What it says, in words. */
  said: string;
  /** Its cell, where it is one step. */
  cell: number | null;
  step: CapacityStep | null;
}

const SAID: Record<StepOutcome, string> = {
  held: "held",
  failed: "failed",
  disturbed: "disturbed, as the machine was busy",
  generator: "limited by the load generator",
  "not-made": "no run",
};

function shapeOf(step: CapacityStep): MarkShape {
  if (step.outcome === "held" || step.outcome === "failed") return step.outcome;
  // What had to be counted although it says little has ended the climb like a failure.
  return step.counts ? "failed" : "none";
}

/** What a step says, in words. */
function saidOf({ outcome, counts, confirms, why }: CapacityStep): string {
  return `${SAID[outcome]}${confirms ? ", at full length" : ""}${counts ? "" : ", repeated"}${why === "" || outcome === "held" ? "" : `: ${why}`}`;
}

/** The marks of a search: its steps or, where there are too many for that, its loads. */
export function marksOf({ steps, curve }: Capacity): KneeMark[] {
  if (steps.length > 0) {
    return steps.map((step) => ({ figures: step, shape: shapeOf(step), confirms: step.confirms, said: saidOf(step), cell: step.cell, step }));
  }
  return curve.map((load) => {
    const shape = load.counted === 0 ? "none" : load.held === load.counted ? "held" : load.held === 0 ? "failed" : "mixed";
    return { figures: load, shape, confirms: false, said: `held in ${load.held} of ${load.counted} steps`, cell: null, step: null };
  });
}

/** A load in its unit. */
export function load(search: Capacity, value: number): string {
  return quantity(value, search.unit);
}

/** The answer in short: `998/s (985/s to 1.02k/s)`. */
export function answer(search: Capacity): string {
  const { estimate, lo, hi, lower_bound: isBound } = search;
  if (estimate !== null && lo !== null) return isBound || hi === null ? `≥ ${load(search, lo)}` : `${load(search, estimate)} (${load(search, lo)} to ${load(search, hi)})`;
  if (lo !== null) return `held at ${load(search, lo)}, and no higher load was asked`;
  return hi === null ? NONE : `did not hold at ${load(search, hi)}`;
}

/** A line within a panel; that with marks is the panel's own. */
export interface KneeLine {
  name: string;
  key: Exclude<keyof CapacityFigures, "load">;
  marked: boolean;
}

export interface KneePanel {
  name: string;
  unit: Unit;
  lines: KneeLine[];
}

const PANELS: KneePanel[] = [
  { name: "messages", unit: "per_s", lines: [{ name: "delivered", key: "delivered_per_s", marked: true }, { name: "offered", key: "offered_per_s", marked: false }] },
  { name: "latency", unit: "ns", lines: [{ name: "p99", key: "p99_ns", marked: true }, { name: "p50", key: "p50_ns", marked: false }] },
  { name: "server", unit: "cores", lines: [{ name: "processors", key: "server_cpu_cores", marked: true }] },
  { name: "server", unit: "bytes", lines: [{ name: "memory", key: "server_rss_bytes", marked: true }] },
];

/** The panels for which a search has figures: a library has no server. */
export function kneePanels({ curve }: Capacity): KneePanel[] {
  return PANELS
    .map((panel) => ({ ...panel, lines: panel.lines.filter(({ key }) => curve.some((load) => load[key] !== null)) }))
    .filter(({ lines }) => lines.some(({ marked }) => marked));
}
