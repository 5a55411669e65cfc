/** Words and marks for verdicts and outcomes: the same everywhere, and never
 *  by colour alone. */
import { looks } from "./context";
import { h } from "./dom";
import type { Cell, Change, Claim, Finding, Group, Page, Run } from "./model";
import { many } from "./text";

export type Tone = "good" | "bad" | "warn" | "plain";

/** A word in a frame. */
export function badge(word: string, tone: Tone, mark = ""): HTMLElement {
  return h("span", { class: `badge ${tone}` }, mark === "" ? null : h("span", { "aria-hidden": "true" }, mark), word);
}

/** A system's colour as a dot, in either theme. */
export function dot(page: Page, system: string): HTMLElement {
  const look = looks(page);
  return h("i", { class: "dot", style: `--light:${look(system, false).colour};--dark:${look(system, true).colour}`, "aria-hidden": "true" });
}

const STATUS: Record<Cell["status"], [Tone, string]> = {
  valid: ["good", "✓"],
  partly: ["warn", "!"],
  invalid: ["warn", "!"],
  failed: ["bad", "✕"],
  missing: ["plain", "…"],
  skipped: ["plain", "–"],
};

export function statusBadge(status: Cell["status"]): HTMLElement {
  const [tone, mark] = STATUS[status];
  return badge(statusWord(status), tone, mark);
}

/** The state of a run, a figure or a cell in a word, as the program prints it. */
const STATES: Record<Cell["status"], string> = { valid: "ok", partly: "unreliable", invalid: "unreliable", failed: "failed", missing: "missing", skipped: "skipped" };

export const statusWord = (status: Cell["status"]): string => STATES[status];

/** The word for a figure, a run or a cell that something disturbed. */
export const UNRELIABLE = STATES.invalid;

/** The word for figures without a fair comparison. */
export const NOT_COMPARABLE = "not comparable";

/** The word for how a point is ranked. */
export const rankWord = (kind: string): string => (kind === "unranked" ? NOT_COMPARABLE : kind);

export type Verdict = "valid" | "partly" | "invalid" | "failed";

export const verdictOf = (run: Run): Verdict => (run.failed ? "failed" : run.valid ? "valid" : run.partly ? "partly" : "invalid");

const RANKS: Record<string, [Tone, string]> = {
  winner: ["good", "▲"], tie: ["plain", "="], behind: ["plain", "▽"], candidate: ["plain", "?"], [NOT_COMPARABLE]: ["warn", "≠"], alone: ["plain", "·"], reference: ["plain", "·"], "left out": ["bad", "✕"],
};

/** Where a cell stands, with what that means: `candidate ≤ 2.3×`. */
export function rankBadge(page: Page, cell: Cell): HTMLElement {
  const found = Object.hasOwn(RANKS, cell.word) ? RANKS[cell.word] : undefined;
  const element = found === undefined ? statusBadge(cell.status) : badge(`${cell.word}${distance(cell)}`, ...found);
  element.title = page.words[cell.word] ?? "";
  return element;
}

/** How far a cell is from the best one: of a candidate at most, of others at least. */
export function distance(cell: Cell): string {
  const [least, most] = cell.distance ?? [1, null];
  if (cell.word === "candidate") return most === null ? "" : ` ≤ ${twoDigits(most, Math.ceil)}×`;
  return least > 1 ? ` ≥ ${twoDigits(least, Math.floor)}×` : "";
}

/** Two significant digits, rounded to the safe side. */
export function twoDigits(value: number, round: (value: number) => number): string {
  const digits = 1 - Math.floor(Math.log10(value));
  const unit = 10 ** -digits;
  return (round(value / unit + (round === Math.ceil ? -1e-9 : 1e-9)) * unit).toFixed(Math.max(0, digits));
}

const FINDING: Record<Finding["outcome"], [Tone, string]> = {
  kept: ["good", "✓"],
  lost: ["bad", "✕"],
  winner: ["good", "▲"],
  tie: ["plain", "="],
  open: ["warn", "?"],
  unranked: ["warn", "≠"],
  note: ["plain", "i"],
};

export function findingBadge(outcome: Finding["outcome"]): HTMLElement {
  const [tone, mark] = FINDING[outcome];
  return badge(rankWord(outcome), tone, mark);
}

const CLAIM: Record<Claim["outcome"], [Tone, string]> = { holds: ["good", "✓"], fails: ["bad", "✕"], open: ["warn", "?"], "not tested here": ["plain", "–"] };

export function claimBadge(outcome: Claim["outcome"]): HTMLElement {
  const [tone, mark] = CLAIM[outcome];
  return badge(outcome, tone, mark);
}

const CHANGE: Record<Change["outcome"], [Tone, string]> = {
  better: ["good", "▲"],
  worse: ["bad", "▼"],
  changed: ["plain", "≠"],
  "no difference": ["plain", "="],
  undecided: ["warn", "?"],
};

export function changeBadge(outcome: Change["outcome"]): HTMLElement {
  const [tone, mark] = CHANGE[outcome];
  return badge(outcome === "undecided" ? "open" : outcome, tone, mark);
}

/** The word for the place of a system by its capacity. */
export function standingWord(standing: string): string {
  if (standing === "undecided") return "candidate";
  return standing === "no answer" ? "no result" : standing;
}

/** `4 runs: 3 ok, 1 unreliable`. */
export function runsOf(cell: Cell): string {
  if (cell.status === "skipped") return STATES.skipped;
  const unreliable = cell.partly_runs + cell.invalid_runs;
  const parts = [`${cell.valid_runs} ${STATES.valid}`, unreliable === 0 ? "" : `${unreliable} ${UNRELIABLE}`, cell.failed_runs === 0 ? "" : `${cell.failed_runs} ${STATES.failed}`];
  return `${many(cell.runs, "run")}: ${parts.filter((part) => part !== "").join(", ")}`;
}

const GROUPS: Record<Group, string> = { counts: "counts", rates: "rates", latency_p50: "p50", latency_p99: "p99", cost: "cost" };

/** The figures that a reason takes away, in words; empty where it is all. */
export function touched(figures: Group[] | undefined): string {
  if (figures === undefined || Object.keys(GROUPS).every((group) => figures.includes(group as Group))) return "";
  return figures.map((group) => GROUPS[group] ?? "").filter(Boolean).join(", ");
}
