import { said, spoiled, type Context } from "../context";
import { copyable, link } from "../controls";
import { h, type Child } from "../dom";
import { NONE, quantity } from "../format";
import type { Cell, Page, Rank } from "../model";
import { plainTable } from "../table";
import { clean, cleanLines, many } from "../text";
import { deliveryOf } from "./cells";
import { moreWords } from "../charts/winners";
import { rankBadge, rankWord, runsOf, statusBadge, UNRELIABLE, verdictOf } from "../words";

/** What the figures of a cell rest on. */
export function cellEvidence(context: Context, index: number): HTMLElement {
  const cell = context.result.cells[index]!;
  const system = context.result.systems.find((system) => system.name === cell.system);
  // What was acknowledged and lost is the first of what was found.
  const lossy = (cell.figures["acked_lost"]?.[0] ?? 0) > 0;
  const notes = cell.notes.length === 0 ? null : [h("h3", null, "Notes"), h("ul", null, cell.notes.map((note) => h("li", null, clean(note, 600))))];
  const versions = Object.entries(system?.versions ?? {}).map(([what, version]) => `${clean(what, 30)} ${clean(String(version), 60)}`);
  return h(
    "div",
    null,
    h("p", { class: "summary" }, statusBadge(cell.status), cell.word === cell.status ? null : [" ", rankBadge(context.page, cell)], ` ${runsOf(cell)}`, versions.length === 0 ? null : h("span", { class: "muted" }, ` · ${versions.join(", ")}`)),
    cell.skipped === null ? null : h("p", null, "Skipped: ", clean(cell.skipped, 600)),
    cell.error === null ? null : h("p", { class: "error" }, cleanLines(cell.error, 2_000)),
    lossy ? notes : null,
    whyNot(context.page, cell.reasons.map(({ reason, runs, touches, evidence }) => ({ reason, evidence, touches, runs: many(runs, "run") }))),
    lossy ? null : notes,
    h("h3", null, "Repeat these runs"),
    copyable(cleanLines(cell.command, 2_000)),
    figures(context, cell),
    runsOfCell(context, index),
  );
}

/** Each reason of a verdict: what it is, what was seen, what to do. */
export function whyNot(page: Page, reasons: { reason: string; evidence: string; touches: string; runs?: string }[]): Child {
  if (reasons.length === 0) return null;
  return [
    h("h3", null, "Why it is unreliable"),
    h(
      "ul",
      { class: "why" },
      reasons.map(({ reason, evidence, touches, runs }) => {
        const words = Object.hasOwn(page.reasons, reason) ? page.reasons[reason] : undefined;
        return h(
          "li",
          null,
          h("p", null, h("strong", null, clean(reason, 60)), runs === undefined ? null : h("span", { class: "muted" }, ` ${runs}`), `: ${clean(evidence, 800)}`),
          h("p", { class: "muted touches" }, touches === "" ? "All figures are unreliable." : `Unreliable: ${clean(touches, 80)}; the other figures are ok.`),
          words === undefined ? null : h("p", { class: "muted" }, words.meaning, " ", h("em", null, words.advice)),
        );
      }),
    ),
  ];
}

function rankWords(rank: Rank | undefined, system: string): string {
  if (rank === undefined) return "";
  const names = rank.systems.map((name) => clean(name, 40)).join(", ");
  if (rank.kind === "unranked" || rank.kind === "alone") return clean(`${rankWord(rank.kind)}: ${rank.why ?? names}`, 200);
  if (rank.kind === "open") return clean(`${rank.systems.includes(system) ? "candidate" : "behind"}; open: ${rank.systems.join(" or ")}${moreWords(rank.repeats_more)}`, 200);
  if (rank.systems.includes(system)) return rank.kind === "winner" ? "best" : `tie: ${names}`;
  return rank.kind === "winner" ? `best is ${names}` : `best are ${names} (tie)`;
}

function figures(context: Context, cell: Cell): Child {
  const point = context.result.points[cell.point];
  const first = deliveryOf([cell]);
  const place = (key: string): number => (first.includes(key) ? first.indexOf(key) : first.length);
  const rows = context.page.figures
    .filter((figure) => cell.figures[figure.key] !== undefined)
    .sort((a, b) => place(a.key) - place(b.key))
    .map((figure): Child[] => {
      const [value, lo, hi] = cell.figures[figure.key]!;
      const interval = lo === null || hi === null ? NONE : `${quantity(lo, figure.unit)} to ${quantity(hi, figure.unit)}`;
      return [h("span", { class: "unbroken" }, figure.label), spoiled(cell, figure.key) ? h("s", { title: UNRELIABLE }, said(cell, figure.key, value, figure.unit)) : said(cell, figure.key, value, figure.unit), interval, String(cell.group_runs[figure.group] ?? 0), h("div", { class: "narrow" }, rankWords(point?.ranks[figure.key], cell.system)), h("div", { class: "wide muted" }, figure.about)];
    });
  if (rows.length === 0) return null;
  const any = context.page.figures.some((figure) => spoiled(cell, figure.key));
  return [
    h("h3", null, "Figures"),
    h("p", { class: "muted" }, `Medians over the runs in which each figure is reliable.${any ? " Struck through: unreliable in all runs." : ""}`),
    plainTable("Figures of the cell", ["figure", { label: "value", numeric: true }, { label: "95 % interval", numeric: true }, { label: "reliable runs", numeric: true }, "rank at this point", "what it is"], rows),
  ];
}

function runsOfCell(context: Context, index: number): Child {
  const mine = context.result.records.map((run, at) => ({ run, at })).filter(({ run }) => run.cell === index);
  if (mine.length === 0) return null;
  const refuses = mine.some(({ run }) => run.refused > 0);
  const rows = mine.map(({ run, at }): Child[] => [
    link(`run ${run.repeat}`, () => context.state.set("run", String(at))),
    statusBadge(verdictOf(run)),
    run.p50 === null ? NONE : quantity(run.p50, "ns"),
    run.p99 === null ? NONE : quantity(run.p99, "ns"),
    quantity(run.delivered_per_s, "per_s"),
    run.delivered_ratio === null ? NONE : quantity(run.delivered_ratio, "share"),
    ...(refuses ? [run.refused.toLocaleString("en")] : []),
    run.acked_lost === null ? NONE : run.acked_lost.toLocaleString("en"),
    run.lost.toLocaleString("en"),
    run.duplicated.toLocaleString("en"),
    clean(run.started.slice(0, 19).replace("T", " "), 40),
  ]);
  const number = (label: string) => ({ label, numeric: true as const });
  return [
    h("h3", null, "Runs"),
    plainTable("Runs of the cell", ["run", "verdict", number("latency p50"), number("latency p99"), number("delivered"), number("of expected"), ...(refuses ? [number("refused")] : []), number("acked lost"), number("lost"), number("duplicated"), "started (UTC)"], rows),
  ];
}
