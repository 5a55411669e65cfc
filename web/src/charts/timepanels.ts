import type { RunRecord, Unit } from "../model";
import { label } from "./clean";

/** ns */
export const SECOND = 1e9;

/** A line over time: pairs of seconds from the window's beginning and a value. */
export interface Trace {
  name: string;
  colour: "ink" | "accent" | "bad" | "muted";
  dash?: number[];
  points: [number, number | null][];
}

export interface TimePanel {
  name: string;
  unit: Unit;
  traces: Trace[];
}

/** The panels that a record has data for. */
export function timePanels(record: RunRecord): TimePanel[] {
  const { series, usage_series: usage } = record;
  const seconds = series.slice_ns / SECOND;
  const over = (values: number[], of: (value: number) => number | null, start: number, each: number): [number, number | null][] =>
    values.map((value, i) => [start + (i + 0.5) * each, of(value)]);
  const rate = (values: number[]) => over(values, (count) => count / seconds, 0, seconds);
  // A slice without an arrival has no latency; the record says 0.
  const time = (values: number[]) => over(values, (ns) => (ns > 0 ? ns : null), 0, seconds);
  const used = (values: number[] | undefined) =>
    usage && values ? over(values, (value) => value, usage.start_ns / SECOND, usage.slice_ns / SECOND) : [];
  const all: TimePanel[] = [
    { name: "messages", unit: "per_s", traces: [
      { name: "sent", colour: "muted", dash: [4, 3], points: rate(series.sent) },
      { name: "delivered", colour: "accent", points: rate(series.delivered) },
    ] },
    { name: "latency", unit: "ns", traces: [
      { name: "p50", colour: "accent", points: time(series.latency_p50_ns) },
      { name: "p99", colour: "ink", points: time(series.latency_p99_ns) },
      { name: "max", colour: "muted", dash: [2, 2], points: time(series.latency_max_ns) },
    ] },
    { name: "consumer lag", unit: "count", traces: [
      // Each is that at the end of its slice. Where nothing ever waits there is nothing to see.
      { name: "messages", colour: "accent", points: series.lag?.some((lag) => lag > 0) ? over(series.lag, (lag) => lag, seconds / 2, seconds) : [] },
    ] },
    { name: "processors", unit: "cores", traces: [
      { name: "server", colour: "accent", points: used(usage?.server?.cpu_cores) },
      { name: "generator", colour: "muted", dash: [4, 3], points: used(usage?.generator?.cpu_cores) },
    ] },
    { name: "memory", unit: "bytes", traces: [
      { name: "server", colour: "accent", points: used(usage?.server?.rss_bytes) },
      { name: "generator", colour: "muted", dash: [4, 3], points: used(usage?.generator?.rss_bytes) },
    ] },
  ];
  return all
    .map((panel) => ({ ...panel, traces: panel.traces.filter(({ points }) => points.some(([, value]) => value !== null)) }))
    .filter(({ traces }) => traces.length > 0);
}

/** A stretch of time with a name, s. */
export interface Span {
  name: string;
  from: number;
  to: number;
  kind: "phase" | "fault";
}

/** Phases and faults of a run, where it is known when they were. */
export function spans(record: RunRecord): Span[] {
  const { phases, window_ns: window } = record;
  const found: Span[] = [];
  if (phases && phases.warmup_ns > 0) found.push({ name: "warm-up", from: -phases.warmup_ns / SECOND, to: 0, kind: "phase" });
  if (phases && phases.drain_ns > 0) found.push({ name: "drain", from: window / SECOND, to: (window + phases.drain_ns) / SECOND, kind: "phase" });
  for (const { what, who, at_ns, until_ns } of record.fault_log ?? []) {
    if (at_ns === null) continue;
    found.push({ name: label(`${what} ${who}`, 24), from: at_ns / SECOND, to: (until_ns ?? at_ns) / SECOND, kind: "fault" });
  }
  return found;
}
