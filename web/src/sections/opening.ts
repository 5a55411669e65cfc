import type { Context, Section } from "../context";
import { link } from "../controls";
import { h, type Child } from "../dom";
import type { CellStatus, Finding, Point, Result, System } from "../model";
import { plainTable } from "../table";
import { clean, many } from "../text";
import { badge, dot, findingBadge, NOT_COMPARABLE, rankWord, statusWord } from "../words";
import { cards } from "./cards";
import { fitForm } from "./fit";
import { trust } from "./trust";

const ABOUT: Record<Finding["about"], string> = { machine: "Machine", arms: "A against B", capacity: "Capacity", delivery: "Delivery", latency: "Latency", throughput: "Throughput", cost: "Cost", validity: "Reliability" };

/** The question, the answer in cards, how far it can be trusted, and the same in sentences. */
export const opening: Section = {
  id: "answer",
  title: "Answer",
  shown: "whole",
  has: () => true,
  render(context) {
    const { result } = context;
    const form = fitForm(context);
    return h(
      "div",
      { class: "opening" },
      h("p", { class: "question" }, clean(result.question, 600)),
      result.quick ? quick() : null,
      busy(result),
      lead(result),
      compared(context),
      cards(context),
      trust(context, verdicts(context), notes(result)),
      fold("The answer in sentences", false, findings(result), h("div", { class: "measured" }, standings(context))),
      form === null ? null : fold("Which systems fit?", context.state.any("fit."), form),
    );
  },
};

function fold(title: string, open: boolean, ...inside: Child[]): HTMLElement {
  return h("details", { class: "fold", open }, h("summary", null, title), inside);
}

/** That others used the machine, where it says so of the whole. */
function busy(result: Result): Child {
  const found = result.findings.find(({ about }) => about === "machine");
  return found === undefined ? null : h("p", { class: "warning busy", role: "note" }, badge("busy machine", "warn", "!"), h("span", null, clean(found.text, 800)));
}

/** Figures that say in a line what has changed, the first that was measured. */
const COMPARED = ["latency_p50_ns", "delivered_per_s"];

/** What has changed between two results, where there are two. */
function compared({ page, state, figure }: Context): Child {
  const changes = page.comparison?.same.flatMap(({ changes }) => changes) ?? [];
  const key = COMPARED.find((key) => changes.some(({ column }) => column === key));
  if (key === undefined) return null;
  const counts = new Map<string, number>();
  for (const { column, outcome } of changes) {
    const word = outcome === "undecided" ? "open" : outcome;
    if (column === key) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const [before, after] = page.results.map(({ name }) => clean(name, 60));
  const words = ["worse", "better", "changed", "no difference", "open"].flatMap((word) => (counts.has(word) ? [`${counts.get(word)} ${word}`] : []));
  const go = (): void => {
    state.set("at", "");
    state.set("at", "comparison");
  };
  return h("p", { class: "lead" }, `${after} against ${before}, ${figure(key).label}: ${words.join(", ")}. `, link("Comparison", go));
}

/** How two settings compare, where that was the question. */
function lead(result: Result): Child {
  return result.findings.filter(({ about }) => about === "arms").map(({ text }) => h("p", { class: "lead" }, clean(text, 800)));
}

function quick(): HTMLElement {
  return h(
    "p",
    { class: "warning", role: "note" },
    badge("quick", "warn", "!"),
    h("span", null, "This study was cut down (", h("code", null, "--quick"), "): fewer repeats or shorter windows than it asks for. It shows that everything works. Do not publish its figures."),
  );
}

function findings(result: Result): HTMLElement {
  if (result.findings.length === 0) return h("p", { class: "muted" }, "The records support no statement yet.");
  return h(
    "dl",
    { class: "findings" },
    result.findings.map((finding) => h("div", null, h("dt", null, ABOUT[finding.about], findingBadge(finding.outcome)), h("dd", null, clean(finding.text, 800)))),
  );
}

/** How many runs are ok, and why the others are not. */
function verdicts(context: Context): HTMLElement {
  const { result, state } = context;
  const { valid, partly, invalid, failed, missing } = result.runs;
  const counts: [CellStatus, number][] = [["valid", valid], ["invalid", partly + invalid], ["failed", failed], ["missing", missing]];
  const there = counts.filter(([, count]) => count > 0);
  const show = (key: string, value: string) => (): void => {
    for (const filter of ["text", "system", "verdict", "reason"]) state.set(`runs.${filter}`, "");
    state.set(key, value);
    state.set("at", "");
    state.set("at", "runs");
  };
  const ordered = Object.entries(result.runs.reasons).sort((a, b) => b[1] - a[1]);
  return h(
    "div",
    { class: "verdicts" },
    h("h3", null, "Runs"),
    h("div", { class: "bar", "aria-hidden": "true" }, there.map(([word, count]) => h("span", { class: word, style: `flex-grow:${count}` }))),
    h(
      "p",
      { class: "counts" },
      there.map(([word, count]) => h("span", { class: word }, word === "missing" ? `${count.toLocaleString("en")} ${word}` : link(`${count.toLocaleString("en")} ${statusWord(word)}`, show("runs.verdict", statusWord(word))))),
    ),
    result.runs.made_again === 0 ? null : h("p", { class: "muted" }, `${many(result.runs.made_again, "run")} repeated, because the one before was unreliable or failed`),
    ordered.length === 0 ? null : h("ul", { class: "reasons" }, ordered.map(([reason, count]) => h("li", null, link(clean(reason), show("runs.reason", reason)), ` ${many(count, "run")}`))),
  );
}

/** A question that points are ranked by. */
const QUESTIONS: { head: string; figure: string; asked: (point: Point) => boolean }[] = [
  { head: "lowest latency p50", figure: "latency_p50_ns", asked: (point) => !point.unthrottled },
  { head: "most delivered at max", figure: "delivered_per_s", asked: (point) => point.unthrottled },
  { head: "least CPU per message", figure: "cpu_ns_per_message", asked: () => true },
];

/** The systems, and at how many points each is best. */
function standings(context: Context): HTMLElement {
  const { result } = context;
  const competing = result.systems.filter((system) => system.kind !== "reference");
  const questions = competing.length < 2 ? [] : QUESTIONS.map((question) => ({ ...question, points: result.points.filter((point) => question.asked(point) && point.ranks[question.figure] !== undefined) })).filter((question) => question.points.length > 0);
  const rows = result.systems.map((system): Child[] => [
    h("span", { class: "system" }, dot(context.page, system.name), clean(system.name, 60), system.kind === "reference" ? h("span", { class: "small" }, " reference") : null),
    h("span", { class: "unbroken" }, versions(system)),
    valid(result, system),
    ...questions.map(({ points, figure }) => (system.kind === "reference" ? "" : won(points, figure, system.name))),
  ]);
  const heads = ["system", "version", { label: "ok cells", numeric: true as const }, ...questions.map(({ head }) => head)];
  const left = questions.map(({ head, points, figure }) => open(head, points, figure)).filter((text) => text !== "");
  return h(
    "div",
    null,
    plainTable("Systems, and at how many points each is best", heads, rows),
    left.length === 0 ? null : h("p", { class: "small" }, `Several may be the best: ${left.join("; ")}.`),
  );
}

/** The versions that tell systems apart: `libzmq 4.3.4`, `server 2.0.11`. The
 *  paths of libraries are in the evidence of each run. */
function versions({ versions }: System): string {
  const { library, version, pubmark: _, path: __, ...others } = versions;
  const own = [library, version].filter((part) => part !== undefined).map((part) => clean(String(part), 40)).join(" ");
  const parts = Object.entries(others).map(([what, version]) => `${clean(what, 30)} ${clean(String(version), 40)}`);
  return [own, ...parts].filter((part) => part !== "").join(", ") || "–";
}

function valid(result: Result, system: System): string {
  const cells = result.cells.filter((cell) => cell.system === system.name && cell.status !== "skipped");
  return `${cells.filter((cell) => cell.status === "valid").length} of ${cells.length}`;
}

/** At how many points several systems may be the best. */
function open(head: string, points: Point[], figure: string): string {
  const all = points.map((point) => point.ranks[figure]).filter((rank) => rank?.kind === "open");
  const unranked = points.filter((point) => point.ranks[figure]?.kind === "unranked").length;
  const more = all.flatMap((rank) => rank?.repeats_more ?? []);
  const [least, most] = [Math.min(...more), Math.max(...more)];
  const repeats = more.length === 0 ? "" : ` (about ${least === most ? least : `${least} to ${most}`} more repeats needed)`;
  const parts = [
    all.length === 0 ? "" : `open at ${all.length}${repeats}`,
    unranked === 0 ? "" : `${NOT_COMPARABLE} at ${unranked}, as the shares delivered differ`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "" : `${head}, of ${many(points.length, "point")} ${parts.join(", ")}`;
}

function won(points: Point[], figure: string, system: string): Child {
  let wins = 0;
  let ties = 0;
  for (const point of points) {
    const rank = point.ranks[figure];
    if (!rank?.systems.includes(system)) continue;
    if (rank.kind === "winner") wins += 1;
    if (rank.kind === "tie") ties += 1;
  }
  const kinds = new Set(points.map((point) => point.ranks[figure]?.kind));
  if (kinds.size === 1 && (kinds.has("open") || kinds.has("unranked"))) return h("span", { class: "muted" }, rankWord([...kinds][0] ?? ""));
  const of = ` of ${points.length}`;
  if (wins === 0 && ties === 0) return h("span", { class: "muted" }, `0${of}`);
  return [h("strong", null, String(wins)), of, ties === 0 ? "" : h("span", { class: "muted" }, `, ${ties} tied`)];
}

function notes(result: Result): Child {
  if (result.notes.length === 0) return null;
  return h("ul", { class: "notes", "aria-label": "Notes" }, result.notes.map((note) => h("li", null, clean(note, 600))));
}
