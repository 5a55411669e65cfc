// Generated from the types of crates/report by
// PUBMARK_WRITE_TYPES=1 cargo test -p pubmark-report --lib typescript
import type { Figure, Group, Unit } from "./model";

/**
 * A reason of a verdict in words.
 */
export type Explanation = { meaning: string, advice: string, };

/**
 * A results folder.
 */
export type Result = {
/**
 * The folder's name.
 */
name: string, title: string, question: string,
/**
 * Values that are the same in all cells, in words.
 */
constants: string,
/**
 * True if the study was shortened.
 */
quick: boolean, runs: Runs,
/**
 * Conclusions in sentences.
 */
findings: Array<Finding>,
/**
 * Remarks on the whole.
 */
notes: Array<string>,
/**
 * In the study's order.
 */
systems: Array<System>,
/**
 * Build info, by the agents' own words.
 */
made: Array<Made>,
/**
 * In the study's order; `system` among them.
 */
axes: Array<Axis>, cells: Array<Cell>,
/**
 * Cells that differ in the system only.
 */
points: Array<Point>, claims: Array<Claim>,
/**
 * Searches for a capacity; empty where the study names no objective.
 */
capacities: Array<Capacity>, reference: Reference | null,
/**
 * What its acknowledgements are worth; null unless the folder is that of a card.
 */
card: GuaranteeCard | null, machine: Array<Fact>,
/**
 * Findings of `pubmark doctor` before the study began.
 */
doctor: { what: string; severity: "good" | "note" | "bad"; found: string; mend: string | null }[],
/**
 * A row for each run; the whole record is in the page's details, by the same index.
 */
records: Array<Run>,
/**
 * `summary.csv`, as the program writes it.
 */
summary_csv: string, };

/**
 * A row of it: counts of copies of messages, null where there is none.
 */
export type GuaranteeRow = {
/**
 * What happened.
 */
what: string,
/**
 * Null if the event was not measured at all.
 */
qos: number | null, runs: number | null,
/**
 * Messages that the server acknowledged.
 */
acked: number | null,
/**
 * Acknowledged messages that a subscriber did not receive.
 */
acked_lost: number | null,
/**
 * Messages that the server refused.
 */
refused: number | null, lost: number | null, duplicated: number | null, reordered: number | null,
/**
 * Longest silence of a subscriber with the fault in it, ns.
 */
outage_ns: number | null,
/**
 * What was lost or broken, why there are no counts, and why they are unreliable.
 */
remarks: Array<string>, };

/**
 * A search, or a study's loads for one system and workload.
 */
export type Capacity = { system: string, label: string,
/**
 * The answer: the interval, and what gave out first.
 */
sentence: string,
/**
 * The objective, as it would be typed.
 */
until: string,
/**
 * The load that is searched.
 */
over: string,
/**
 * The load in words.
 */
load: string,
/**
 * Unit of the load.
 */
unit: Unit,
/**
 * Null where nothing failed, or nothing held.
 */
estimate: number | null,
/**
 * If nothing failed, the highest load that held.
 */
lo: number | null,
/**
 * Null of a lower bound; where nothing held, the lowest load that failed.
 */
hi: number | null,
/**
 * Confidence level of the interval, 0 to 1.
 */
level: number,
/**
 * True if the system may carry more, because the load generator reached its limit first.
 */
lower_bound: boolean,
/**
 * True if the interval is as narrow as requested.
 */
settled: boolean,
/**
 * True if a run of full length held at the low end.
 */
confirmed: boolean, limited_by: string | null,
/**
 * Standing of its system among those of its point, as a word.
 */
standing: string,
/**
 * Each load that was asked, ascending.
 */
curve: Array<CapacityLoad>,
/**
 * Empty where they are too many.
 */
steps: Array<CapacityStep>, };

/**
 * A sentence.
 */
export type Finding = { about: "machine" | "arms" | "capacity" | "delivery" | "latency" | "throughput" | "cost" | "validity", outcome: "kept" | "lost" | "winner" | "tie" | "open" | "unranked" | "note", text: string, };

/**
 * A step.
 */
export type CapacityStep = {
/**
 * `None` if the search has a folder of its own.
 */
cell: number | null, load: number,
/**
 * `generator`, `disturbed` and `not-made` say nothing of the system.
 */
outcome: "held" | "failed" | "disturbed" | "generator" | "not-made",
/**
 * True if it counts; a step that shows nothing is repeated.
 */
counts: boolean,
/**
 * True for the run of full length.
 */
confirms: boolean,
/**
 * The broken bound; empty if the step held.
 */
why: string, window_s: number, offered_per_s: number, delivered_per_s: number, p50_ns: number | null, p99_ns: number | null, server_cpu_cores: number | null, server_rss_bytes: number | null, };

/**
 * A system, and what its agents say of how it is made.
 */
export type Made = {
/**
 * The system.
 */
system: string,
/**
 * What, and how.
 */
texts: Array<[string, string]>, };

/**
 * Both of one kind of latency.
 */
export type Curves = {
/**
 * By quantile, ns.
 */
values: Array<number>,
/**
 * By bin.
 */
distribution: Distribution, };

/**
 * Everything.
 */
export type Page = {
/**
 * Version of this layout.
 */
format: 1,
/**
 * Version of the program that made the page.
 */
pubmark: string,
/**
 * Quantiles of the percentile curves, ascending: 1 − 10^(−k/10).
 */
quantiles: Array<number>,
/**
 * Bins of a distribution: bin k covers [10^(k/n), 10^((k+1)/n)) ns.
 */
bins_per_decade: number,
/**
 * The figures that a cell may have, in the order of the summary.
 */
figures: Figure[],
/**
 * The meaning of each word for a cell: winner, tie, behind and so on.
 */
words: { [key in string]: string },
/**
 * The meaning of each reason of a verdict, and advice.
 */
reasons: { [key in string]: Explanation },
/**
 * One, or several to be seen side by side.
 */
results: Array<Result>,
/**
 * The first two compared; null where there is one.
 */
comparison: Comparison | null,
/**
 * True if the page is served by a program that still measures.
 */
live: boolean, };

/**
 * Median of each figure over the steps at one load.
 */
export type CapacityLoad = { load: number, offered_per_s: number | null, delivered_per_s: number | null, p50_ns: number | null, p99_ns: number | null, server_cpu_cores: number | null, server_rss_bytes: number | null,
/**
 * Steps in which the objective held, of those that count.
 */
held: number, counted: number, };

/**
 * Shares of all messages by bin: bin k covers 10^(k/20) to 10^((k+1)/20) ns.
 */
export type Distribution = {
/**
 * Number of the first bin.
 */
first: number,
/**
 * The shares from there on, in 0 to 1.
 */
shares: Array<number>, };

/**
 * Such a row as the page shows it.
 */
export type DeliveryRow = {
/**
 * What is counted, or the statement that was broken.
 */
what: string, qos: number | null, runs: number, delivered: number,
/**
 * Null if it is not measured.
 */
count: number | null,
/**
 * Why it is not measured.
 */
why: string | null, };

/**
 * The card as the page shows it.
 */
export type GuaranteeCard = { rows: Array<GuaranteeRow>,
/**
 * Counts over all runs.
 */
delivery: Array<DeliveryRow>, };

export type Against = { reason: string, runs: number,
/**
 * The figures that it takes away, in words; empty for all.
 */
touches: string, evidence: string, };

export type Axis = {
/**
 * Name as in the study file.
 */
name: string, label: string,
/**
 * In the study's order, or ascending where all are numbers.
 */
values: Array<AxisValue>,
/**
 * True if all values are numbers, except `max`.
 */
numeric: boolean, };

export type AxisValue = {
/**
 * Value as in a cell's axes.
 */
value: string | number | boolean,
/**
 * Value as typed on the command line.
 */
label: string, };

export type Cell = { label: string, system: string, axes: Record<string, string | number | boolean>,
/**
 * The point that it belongs to, by index.
 */
point: number,
/**
 * True if messages are sent as fast as possible.
 */
unthrottled: boolean,
/**
 * True if delivery is shown before latency, because delivery was guaranteed or there was a
 * fault.
 */
delivery_first: boolean, pattern: string,
/**
 * `partly`: some of its figures may be quoted, others not.
 */
status: "valid" | "partly" | "invalid" | "failed" | "missing" | "skipped",
/**
 * Standing by the ranking figure of its point: a key of `Page.words`.
 */
word: string,
/**
 * Factor between this system and the best one of its point, at least and at most, valid for
 * the table as a whole; for candidates and for systems that are behind.
 */
distance: [number, number | null] | null,
/**
 * About how many more repeats would leave one candidate.
 */
repeats_more: number | null, runs: number, valid_runs: number,
/**
 * Runs of which some figures may be quoted and others not.
 */
partly_runs: number, invalid_runs: number, failed_runs: number, missing_runs: number,
/**
 * Runs that may be quoted for each group of figures.
 */
group_runs: Record<Group, number>, reasons: Array<Against>, notes: Array<string>, error: string | null, skipped: string | null,
/**
 * By key; of the runs that count for it or, where there are none, of those that do
 * not: then it is among `unquoted`.
 */
figures: { [key in string]: [number, number | null, number | null] },
/**
 * Keys of the figures that may not be quoted; absent where there are none.
 */
unquoted?: Array<string>,
/**
 * Sign before a figure that is a bound.
 */
signs?: Record<string, "≥" | "≤">,
/**
 * Figures as multiples of the floor's in the same block, by key.
 */
floors?: { [key in string]: [number, number | null, number | null] },
/**
 * Latency of the runs merged, by where it counts from; absent at `max`.
 */
curves: { [key in string]: Curves },
/**
 * The command that makes this cell's runs again.
 */
command: string, };

export type CellChange = { label: string, axes: Record<string, string | number | boolean>, changes: Array<Change>, };

export type Change = {
/**
 * Key of the figure.
 */
column: string, a: [number, number | null, number | null] | null, b: [number, number | null, number | null] | null,
/**
 * b over a.
 */
ratio: [number, number | null, number | null] | null, outcome: "better" | "worse" | "no difference" | "undecided" | "changed", why: string | null, };

export type Claim = { id: string, says: string, outcome: "holds" | "fails" | "open" | "not tested here", evidence: string, };

export type Comparison = { same: Array<CellChange>,
/**
 * Labels of cells that only one of them has.
 */
only_a: Array<string>, only_b: Array<string>, environment: Array<Difference>, };

export type Difference = { what: string, a: string, b: string, };

export type Fact = { label: string, value: string, };

export type Point = { axes: Record<string, string | number | boolean>, label: string, unthrottled: boolean,
/**
 * Cells, by index, in the study's order of systems.
 */
cells: Array<number>,
/**
 * The cell of the kernel floor, by index; null where there is none that is valid.
 */
floor: number | null,
/**
 * Best systems by each figure that can be ranked.
 */
ranks: { [key in string]: Rank },
/**
 * By figure: at least how many times as good the winner is as the next.
 */
leads?: { [key in string]: number },
/**
 * By the capacity that the study asks for.
 */
capacity?: Rank,
/**
 * Searches that the rank is about, as indices.
 */
searches?: Array<number>, };

export type Published = { cell: number, figure: string, value: number, note: string | null, };

export type Rank = { kind: "winner" | "tie" | "alone" | "open" | "unranked",
/**
 * The systems that may be the best, best looking first: the winner alone, those that
 * tie, or the candidates.
 */
systems: Array<string>,
/**
 * Why it is open or unranked.
 */
why: string | null,
/**
 * About how many more repeats would leave one candidate.
 */
repeats_more: number | null, };

export type Reference = { source: string, machine: string, note: string | null, values: Array<Published>,
/**
 * Rows that belong to no cell of this study.
 */
unmatched: number, };

export type Run = { cell: number, repeat: number, started: string, valid: boolean, partly: boolean, failed: boolean, reasons: Array<string>, notes: number, p50: number | null, p99: number | null, delivered_per_s: number, delivered_ratio: number | null, lost: number, duplicated: number,
/**
 * `None` if servers do not acknowledge.
 */
acked: number | null, acked_lost: number | null,
/**
 * Messages that the server refused.
 */
refused: number,
/**
 * Generator, library and server together.
 */
cpu_cores: number | null, };

export type Runs = { valid: number,
/**
 * Number of runs of which some figures are reliable.
 */
partly: number, invalid: number, failed: number, missing: number, made_again: number,
/**
 * Number of runs with each reason.
 */
reasons: { [key in string]: number }, };

export type System = { name: string, kind: "broker" | "library" | "reference",
/**
 * Version by what has it, as in `server`: `2.0.11`.
 */
versions: { [key in string]: string }, };
