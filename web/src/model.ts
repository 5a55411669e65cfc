/** The data that the page is given. Every time is in nanoseconds, every rate per
 *  second, every share 0 to 1, whatever is shown. Strings come from records and from
 *  servers' logs: they are shown as text, never as HTML. `page.ts` is generated from
 *  the program's types; what is here is read from a run record, or names a part. */
import type { CapacityLoad, CapacityStep, Cell } from "./page";
export type * from "./page";

export type Unit = "ns" | "per_s" | "bytes_per_s" | "bytes" | "share" | "count" | "cores" | "multiple";

export interface Figure {
  /** Column of summary.csv, e.g. `latency_p50_ns`. */
  key: string;
  /** For people, e.g. `latency p50`. */
  label: string;
  unit: Unit;
  better: "lower" | "higher" | null;
  /** What stands or falls with it where something spoils a run. */
  group: Group;
  /** What it is, in a sentence. */
  about: string;
}

export type Group = "counts" | "rates" | "latency_p50" | "latency_p99" | "cost";

/** Median over the runs, and its 95 % interval. */
export type Estimate = [value: number, lo: number | null, hi: number | null];

export type CellStatus = Cell["status"];

/** Less the generator's own delay; from the due time; from the actual send time. */
export type LatencyKind = "latency" | "intended" | "service";

/** What is shown of a load: the median over its steps, or one step's own. */
export type CapacityFigures = Omit<CapacityLoad, "held" | "counted">;

export type StepOutcome = CapacityStep["outcome"];

/** What it cost that the server ended, stood still or was cut off, ns. */
export interface Recovery {
  silence_ns: number | null;
  beyond_ns: number | null;
  caught_up_after_ns: number | null;
  watched_ns: number | null;
  listens_after_ns?: number | null;
  clients_back_after_ns: number | null;
  clients_not_back: number | null;
}

/** A run record, as in runs.jsonl without its histograms: what the page uses of it. */
export interface RunRecord {
  /** Version of the record's layout. */
  schema: number;
  cell: Record<string, unknown>;
  repeat: number;
  system: string;
  started: string;
  versions: Record<string, unknown>;
  options: Record<string, unknown>;
  /** Whose defaults the system had, and what was not its makers'. */
  settings?: { use: string; differences: { name: string; value: unknown; stock: unknown; why: string }[] } | null;
  applied: Record<string, unknown>;
  workload: Record<string, unknown>;
  window_ns: number;
  counts: Record<string, number>;
  rates: Record<string, number | boolean>;
  latency_ns: Summary | null;
  /** In layout 1 the same as `latency_ns`. */
  intended_latency_ns: Summary | null;
  service_latency_ns: Summary | null;
  send_lag_ns: Summary | null;
  own_lag_ns: Summary | null;
  receive_lag_ns: Summary | null;
  ack_latency_ns?: Summary | null;
  pacing: { budget_cores: number; spent_cores: number; margin_ns: number } | null;
  jitter_ns: number | null;
  server: Usage | null;
  generator: Usage | null;
  deployment: Record<string, unknown> | null;
  connections: Record<string, unknown> | null;
  fault_log: { what: string; who: string; at_ns: number | null; until_ns: number | null; note: string | null }[];
  /** Absent where no fault of the server or of a link happened. */
  recovery?: Recovery | null;
  series: {
    slice_ns: number;
    sent: number[];
    delivered: number[];
    /** Copies that were sent and have not arrived; absent where it is not known. */
    lag?: number[];
    latency_p50_ns: number[];
    latency_p99_ns: number[];
    latency_max_ns: number[];
  };
  /** Absent in records of older versions. */
  usage_series?: UsageSeries | null;
  phases?: { warmup_ns: number; window_ns: number; drain_ns: number } | null;
  machine: { steal: number; foreign_cores: number; cores: number; awake?: boolean };
  remarks: string[];
  error: string | null;
  verdict: {
    valid: boolean;
    reasons: { reason: string; evidence: string; figures?: Group[] }[];
    notes: { part: string; evidence: string }[];
  };
  [key: string]: unknown;
}

export interface Summary {
  count: number;
  min: number;
  mean: number;
  stddev: number;
  p50: number;
  p90: number;
  p95: number;
  p99: number;
  p999: number;
  max: number;
}

export interface Usage {
  cpu_s: number;
  cpu_cores: number;
  rss_bytes_median: number;
  rss_bytes_max: number;
  uss_bytes_median: number;
  /** To storage; absent where it is not known. */
  written_bytes?: number;
  [key: string]: number | undefined;
}

export interface UsageSeries {
  /** From the window's beginning; negative within the warm-up. */
  start_ns: number;
  slice_ns: number;
  server: UsageLine | null;
  generator: UsageLine | null;
}

export interface UsageLine {
  cpu_cores: number[];
  rss_bytes: number[];
}
