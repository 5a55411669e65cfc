/** The page's data, as the program writes it. Every time is in nanoseconds,
 *  every rate per second, every share 0 to 1, whatever is shown. Strings come
 *  from records and from servers' logs: they are shown as text, never as HTML. */
export interface Page {
  /** Version of this layout. */
  format: 1;
  /** Version of the program that made the page. */
  pubmark: string;
  /** Quantiles at which percentile curves are given, ascending: 1 − 10^(−k/10). */
  quantiles: number[];
  /** Bins of a distribution per decade: bin k covers [10^(k/n), 10^((k+1)/n)) ns. */
  bins_per_decade: number;
  /** The figures that a cell may have, in the order of the summary. */
  figures: Figure[];
  /** What each word for a cell means: winner, tie, behind and so on. */
  words: Record<string, string>;
  /** What each reason of a verdict means, and what to do about it. */
  reasons: Record<string, { meaning: string; advice: string }>;
  /** One, or several to be seen side by side. */
  results: Result[];
  /** The first two compared; null where there is one. */
  comparison: Comparison | null;
  /** Whether the page is served by a program that is still at work. */
  live: boolean;
}

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

export interface Result {
  /** The folder's name. */
  name: string;
  title: string;
  question: string;
  /** What is the same in all cells, in words. */
  constants: string;
  /** Whether the study was cut down. */
  quick: boolean;
  runs: { valid: number; partly: number; invalid: number; failed: number; missing: number; made_again: number; reasons: Record<string, number> };
  /** What the records support, in sentences. */
  findings: Finding[];
  /** Remarks on the whole. */
  notes: string[];
  systems: System[];
  /** How what was measured is made, by the agents' own words: what, and how. */
  made: { system: string; texts: [string, string][] }[];
  /** In the study's order; `system` among them. */
  axes: Axis[];
  cells: Cell[];
  /** Cells that differ in the system only. */
  points: Point[];
  claims: Claim[];
  /** Searches for a capacity; empty where the study names no objective. */
  capacities: Capacity[];
  reference: Reference | null;
  machine: { label: string; value: string }[];
  /** What `pubmark doctor` said before the study began. */
  doctor: { what: string; severity: "good" | "note" | "bad"; found: string; mend: string | null }[];
  /** A row a run; the whole record is in the page's details, by the same index. */
  records: Run[];
  /** summary.csv, as the program writes it. */
  summary_csv: string;
}

export interface Finding {
  about: "arms" | "capacity" | "delivery" | "latency" | "throughput" | "cost" | "validity";
  outcome: "kept" | "lost" | "winner" | "tie" | "undecided" | "unranked" | "note";
  text: string;
}

export interface System {
  name: string;
  kind: "broker" | "library" | "reference";
  /** Version by what has it, e.g. `server`: `2.0.11`. */
  versions: Record<string, string>;
}

export interface Axis {
  /** As in the study file. */
  name: string;
  label: string;
  /** In the study's order, or ascending where all are numbers. */
  values: AxisValue[];
  /** Whether all values are numbers, `max` aside. */
  numeric: boolean;
}

export interface AxisValue {
  /** As in a cell's axes. */
  value: string | number | boolean;
  /** As it would be typed. */
  label: string;
}

/** `partly`: some of its figures may be quoted, others not. */
export type CellStatus = "valid" | "partly" | "invalid" | "failed" | "missing" | "skipped";

export interface Cell {
  label: string;
  system: string;
  axes: Record<string, string | number | boolean>;
  /** The point that it belongs to, by index. */
  point: number;
  /** Whether messages are sent as fast as they go. */
  unthrottled: boolean;
  /** Whether what became of each message is to be seen before any latency:
   *  delivery was guaranteed, or a fault befell a part. */
  delivery_first: boolean;
  pattern: string;
  status: CellStatus;
  /** Where it stands by the figure that ranks its point: a key of `Page.words`. */
  word: string;
  /** About how many more repeats would tell, where that is undecided. */
  repeats_more: number | null;
  runs: number;
  valid_runs: number;
  /** Runs of which some figures may be quoted and others not. */
  partly_runs: number;
  invalid_runs: number;
  failed_runs: number;
  missing_runs: number;
  /** Runs that may be quoted for each group of figures. */
  group_runs: Record<Group, number>;
  /** `touches`: the figures that it takes away, in words; empty for all. */
  reasons: { reason: string; runs: number; touches: string; evidence: string }[];
  notes: string[];
  error: string | null;
  skipped: string | null;
  /** By key; of the runs that count for it or, where there are none, of those
   *  that do not: then it is among `unquoted`. */
  figures: Record<string, Estimate>;
  /** Keys of the figures that may not be quoted; absent where there are none. */
  unquoted?: string[];
  /** What stands before a figure that is a bound. */
  signs?: Record<string, "≥" | "≤">;
  /** Figures as multiples of the floor's in the same block, by key. */
  floors?: Record<string, Estimate>;
  /** Latency of the runs merged, by where it counts from; absent at `max`. */
  curves: Partial<Record<LatencyKind, Curves>>;
  /** The command that makes this cell's runs again. */
  command: string;
}

/** Less the generator's own lag; from the due time; from the actual send time. */
export type LatencyKind = "latency" | "intended" | "service";

export interface Curves {
  /** At `Page.quantiles`, ns; shorter where samples are too few for the highest. */
  values: number[];
  /** Shares of all messages by bin, the first bin's number first. */
  distribution: { first: number; shares: number[] };
}

export interface Point {
  axes: Record<string, string | number | boolean>;
  label: string;
  unthrottled: boolean;
  /** Cells, by index, in the study's order of systems. */
  cells: number[];
  /** The cell of the kernel floor, by index; null where there is none that is valid. */
  floor: number | null;
  /** Who is best by each figure that can be ranked. */
  ranks: Record<string, Rank>;
  /** By the capacity that the study asks for, whatever the load of the point. */
  capacity?: Rank;
  /** What that rank is of, as indices into `capacities`. */
  searches?: number[];
}

export interface Rank {
  kind: "winner" | "tie" | "alone" | "undecided" | "unranked";
  /** The winner, those in the tie (best value first), or those that stand in the way. */
  systems: string[];
  /** Why nothing may be said. */
  why: string | null;
  /** About how many more repeats would tell. */
  repeats_more: number | null;
}

export interface Claim {
  id: string;
  says: string;
  outcome: "holds" | "fails" | "undecided";
  evidence: string;
}

/** A search for the highest load at which an objective holds. */
export interface Capacity {
  system: string;
  label: string;
  /** The answer: the interval, and what gave out first. */
  sentence: string;
  /** The objective, as it would be typed. */
  until: string;
  /** What is turned up: `rate`, `pairs` and so on. */
  over: string;
  /** What a load is, in words. */
  load: string;
  /** What a load is counted in. */
  unit: Unit;
  /** Null where nothing failed, or nothing held. */
  estimate: number | null;
  /** Where nothing failed, the highest load that held. */
  lo: number | null;
  /** Null of a lower bound; where nothing held, the lowest load that failed. */
  hi: number | null;
  /** How sure the interval is, 0 to 1. */
  level: number;
  /** Whether the system may carry more: the load generator gave out first. */
  lower_bound: boolean;
  /** Whether the interval is as narrow as was asked for. */
  settled: boolean;
  /** Whether a run of full length held at the low end. */
  confirmed: boolean;
  limited_by: string | null;
  /** Where its system stands among those of its point, in a word. */
  standing: string;
  /** Each load that was asked, ascending. */
  curve: CapacityLoad[];
  /** The steps in their order; empty where they are thousands. */
  steps: CapacityStep[];
}

/** What is shown of a load: the median over its steps, or one step's own. */
export interface CapacityFigures {
  load: number;
  offered_per_s: number | null;
  delivered_per_s: number | null;
  p50_ns: number | null;
  p99_ns: number | null;
  server_cpu_cores: number | null;
  server_rss_bytes: number | null;
}

export interface CapacityLoad extends CapacityFigures {
  /** Steps in which the objective held, of those that count. */
  held: number;
  counted: number;
}

/** `generator`, `disturbed` and `not-made` say nothing of the system. */
export type StepOutcome = "held" | "failed" | "disturbed" | "generator" | "not-made";

export interface CapacityStep extends CapacityFigures {
  /** Its cell, by index; null where the search has a folder of its own. */
  cell: number | null;
  outcome: StepOutcome;
  /** Whether it counts: one that says nothing is made again. */
  counts: boolean;
  /** Whether it was the run of full length. */
  confirms: boolean;
  /** What was not kept to; empty where it held. */
  why: string;
  window_s: number;
}

/** Published figures of another machine. */
export interface Reference {
  source: string;
  machine: string;
  note: string | null;
  values: { cell: number; figure: string; value: number; note: string | null }[];
  /** Rows that belong to no cell of this study. */
  unmatched: number;
}

/** A run in short. */
export interface Run {
  cell: number;
  repeat: number;
  started: string;
  valid: boolean;
  /** Whether some of its figures may be quoted, where it is not valid. */
  partly: boolean;
  failed: boolean;
  reasons: string[];
  notes: number;
  p50: number | null;
  p99: number | null;
  delivered_per_s: number;
  delivered_ratio: number | null;
  lost: number;
  duplicated: number;
  /** Null where servers do not acknowledge. */
  acked: number | null;
  acked_lost: number | null;
  /** Refused by the server. */
  refused: number;
  /** Generator, library and server together. */
  cpu_cores: number | null;
}

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
  [key: string]: number;
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

/** Two results folders, the first the baseline. */
export interface Comparison {
  same: CellChange[];
  /** Labels of cells that only one of them has. */
  only_a: string[];
  only_b: string[];
  environment: { what: string; a: string; b: string }[];
}

export interface CellChange {
  label: string;
  axes: Record<string, string | number | boolean>;
  /** By figure. */
  changes: Change[];
}

export interface Change {
  /** Key of the figure. */
  column: string;
  a: Estimate | null;
  b: Estimate | null;
  /** b over a. */
  ratio: Estimate | null;
  outcome: "better" | "worse" | "no difference" | "undecided" | "changed";
  why: string | null;
}
