/** Words and marks for verdicts and outcomes: the same everywhere, and never
 *  by colour alone. */
import { looks } from "./context";
import { h } from "./dom";
import type { Cell, Change, Claim, Finding, Page, Run } from "./model";
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
  invalid: ["warn", "!"],
  failed: ["bad", "✕"],
  missing: ["plain", "…"],
  skipped: ["plain", "–"],
};

export function statusBadge(status: Cell["status"]): HTMLElement {
  const [tone, mark] = STATUS[status];
  return badge(status, tone, mark);
}

export type Verdict = "valid" | "invalid" | "failed";

export const verdictOf = (run: Run): Verdict => (run.failed ? "failed" : run.valid ? "valid" : "invalid");

const FINDING: Record<Finding["outcome"], [Tone, string]> = {
  winner: ["good", "▲"],
  tie: ["plain", "="],
  undecided: ["warn", "?"],
  note: ["plain", "i"],
};

export function findingBadge(outcome: Finding["outcome"]): HTMLElement {
  const [tone, mark] = FINDING[outcome];
  return badge(outcome, tone, mark);
}

const CLAIM: Record<Claim["outcome"], [Tone, string]> = { holds: ["good", "✓"], fails: ["bad", "✕"], undecided: ["warn", "?"] };

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
  return badge(outcome, tone, mark);
}

/** `4 of 4 runs valid`. */
export function runsOf(cell: Cell): string {
  if (cell.status === "skipped") return "left out";
  return `${cell.valid_runs} of ${many(cell.runs, "run")} valid`;
}
