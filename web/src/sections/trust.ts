import type { Context } from "../context";
import { link } from "../controls";
import { h, type Child } from "../dom";
import type { Cell, Result } from "../model";
import { clean, many } from "../text";
import { badge, verdictOf, type Tone } from "../words";

/** Runs that are listed; the table of all runs has the others. */
const LISTED = 20;
/** Groups of figures that the line names. */
const GROUPS_MAX = 2;

/** `72 runs: 71 ok, 1 unreliable for p99`. */
export function trustWords({ runs, cells }: Pick<Result, "runs" | "cells">): string {
  const { valid, partly, invalid, failed, missing } = runs;
  const made = valid + partly + invalid + failed;
  const unreliable = partly + invalid;
  const figures = invalid > 0 ? [] : groupsOf(cells);
  const of = figures.length > 0 && figures.length <= GROUPS_MAX ? ` for ${figures.join(" and ")}` : "";
  const count = (number: number): string => number.toLocaleString("en");
  if (made === 0) return `0 of ${many(missing, "run")} made`;
  const parts = [`${count(valid)} ok`, unreliable > 0 ? `${count(unreliable)} unreliable${of}` : "", failed > 0 ? `${count(failed)} failed` : "", missing > 0 ? `${count(missing)} missing` : ""];
  return `${many(made, "run")}: ${parts.filter((part) => part !== "").join(", ")}`;
}

/** The groups of figures that reasons touch in these cells; empty where one touches all. */
function groupsOf(cells: readonly Pick<Cell, "reasons">[]): string[] {
  const touched = cells.flatMap(({ reasons }) => reasons.map(({ touches }) => touches));
  return touched.includes("") ? [] : [...new Set(touched.flatMap((words) => words.split(/, | and /)))];
}

/** One line on the runs, which opens to the list of those that are not ok. */
export function trust(context: Context, ...inside: Child[]): HTMLElement {
  const { valid, partly, invalid, failed } = context.result.runs;
  const made = valid + partly + invalid + failed;
  const [tone, mark]: [Tone, string] = made > 0 && valid === made ? ["good", "✓"] : made > 0 && valid + partly === 0 ? ["bad", "!"] : ["warn", "!"];
  return h(
    "details",
    { class: "fold trust" },
    h("summary", null, h("span", { class: `badge ${tone}`, "aria-hidden": "true" }, mark), " ", trustWords(context.result)),
    h("div", { class: "trusted" }, inside, list(context)),
  );
}

/** The runs that are not ok, each with its reasons and its evidence. */
function list(context: Context): Child {
  const { result, state, page } = context;
  const bad = result.records.flatMap((run, index) => (verdictOf(run) === "valid" ? [] : [{ run, index }]));
  if (bad.length === 0) return null;
  const row = ({ run, index }: (typeof bad)[number]): HTMLElement => {
    const cell = result.cells[run.cell];
    const reasons = run.reasons.map((reason): Child => {
      const touches = cell?.reasons.find((one) => one.reason === reason)?.touches ?? "";
      return h("span", { title: page.reasons[reason]?.meaning }, ` ${clean(reason, 40)}${touches === "" ? "" : ` (${clean(touches, 60)})`}`);
    });
    return h("li", null, link(`${clean(cell?.label ?? "", 80)}, run ${run.repeat}`, () => state.set("run", String(index))), " ", run.failed ? badge("failed", "bad", "✕") : badge("unreliable", "warn", "!"), reasons);
  };
  const left = bad.length - LISTED;
  const all = (): void => {
    state.set("at", "");
    state.set("at", "runs");
  };
  return [
    h("h3", null, "Runs that are not ok"),
    h("ul", { class: "not-ok" }, bad.slice(0, LISTED).map(row)),
    left > 0 && h("p", { class: "small" }, link(`${left.toLocaleString("en")} more in the table of all runs`, all)),
  ];
}
