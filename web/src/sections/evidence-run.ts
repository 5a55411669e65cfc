import type { Context } from "../context";
import { h, type Child } from "../dom";
import { record } from "../data";
import { saveRecord } from "../export";
import { fact, flat } from "../facts";
import { NONE, quantity } from "../format";
import type { RunRecord, Summary, Usage } from "../model";
import { plainTable } from "../table";
import { clean, cleanLines } from "../text";
import { badge, statusBadge, touched, verdictOf } from "../words";
import { whyNot } from "./evidence-cell";
import { timeSeries } from "./timeseries";

const number = (label: string) => ({ label, numeric: true as const });

/** What the figures of a run rest on: its record, unpacked now. */
export function runEvidence(context: Context, index: number): HTMLElement {
  const run = context.result.records[index]!;
  const body = h("div", { "aria-busy": "true" }, h("p", { class: "muted" }, "Unpacking the record…"));
  record(context.index, index)
    .then((found) => body.replaceChildren(...parts(found, context)))
    .catch((error: unknown) => body.replaceChildren(h("p", { class: "error" }, `The record cannot be read: ${clean(String(error))}`)))
    .finally(() => body.removeAttribute("aria-busy"));
  const said = h("span", { role: "status", class: "muted" });
  const download = (): void => void saveRecord(context.result, context.index, index).catch((error: unknown) => said.replaceChildren(clean(String(error))));
  return h(
    "div",
    null,
    h(
      "p",
      { class: "summary" },
      statusBadge(verdictOf(run)),
      h("span", { class: "muted" }, ` started ${clean(run.started.slice(0, 23).replace("T", " "), 40)} UTC `),
      h("button", { type: "button", onclick: download }, "Record as JSON"),
      said,
    ),
    body,
  );
}

/** The record from what matters most to what is seldom asked. A part that
 *  another version wrote otherwise is told, and the others stand. */
function parts(record: RunRecord, context: Context): HTMLElement[] {
  const all: [string, () => Child][] = [
    ["verdict", () => verdict(record, context)],
    ["figures", () => figures(record)],
    ["time", () => timeSeries(record, context)],
    ["faults", () => faults(record)],
    ["phases", () => phases(record)],
    ["usage", () => usage(record)],
    ["deployment", () => facts("Deployment and limits", record.deployment)],
    ["connections", () => facts("Connections", record.connections)],
    ["link", () => facts("Link", record["link"])],
    ["machine", () => facts("Machine during the window", record.machine)],
    ["settings", () => settings(record)],
    ["options", () => options(record)],
    ["workload", () => facts("Workload", record.workload)],
    ["versions", () => facts("Versions", record.versions)],
    ["remarks", () => list("Remarks of the agents", record.remarks)],
    ["logs", () => logs(record)],
  ];
  return all.map(([name, part]) => {
    try {
      return h("section", { class: `part ${name}` }, part());
    } catch (error) {
      return h("p", { class: "muted" }, `${name}: not shown (${clean(String(error), 120)})`);
    }
  }).filter((part) => part.childNodes.length > 0);
}

function verdict(record: RunRecord, { page }: Context): Child {
  const { reasons, notes } = record.verdict;
  const against = whyNot(page, reasons.map(({ reason, evidence, figures }) => ({ reason, evidence, touches: touched(figures) })));
  const found = notes.length === 0 ? null : [h("h3", null, "Notes"), h("ul", null, notes.map(({ part, evidence }) => h("li", null, h("strong", null, clean(part, 40)), `: ${clean(evidence, 800)}`)))];
  // What was acknowledged and lost is the first of what was found.
  const lossy = (record.counts?.["acked_lost"] ?? 0) > 0;
  return [record.error === null ? null : h("p", { class: "error" }, cleanLines(record.error, 4_000)), lossy ? [found, against] : [against, found]];
}

const KINDS: [string, string][] = [
  ["latency_ns", "latency, less the generator delay"],
  ["intended_latency_ns", "latency from the due time"],
  ["service_latency_ns", "service latency, from the actual send time"],
  ["send_lag_ns", "send lag: due until sent"],
  ["own_lag_ns", "generator delay: the load generator's part of it"],
  ["ack_latency_ns", "time to acknowledgement: due until acknowledged, less the generator delay"],
  ["receive_lag_ns", "receive lag: waited for our loop at most"],
];
const MARKS: (keyof Summary)[] = ["min", "mean", "stddev", "p50", "p90", "p95", "p99", "p999", "max"];

function figures(record: RunRecord): Child {
  // In layout 1 the headline counted from the due time.
  const kinds = KINDS.filter(([key]) => record.schema > 1 || key !== "latency_ns");
  const summaries = kinds.filter(([key]) => record[key]);
  const counted = h("dl", { class: "facts" }, [
    ...Object.entries(record.counts ?? {}),
    ...Object.entries(record.rates ?? {}),
    ["jitter_ns", record.jitter_ns] as const,
  ].map(([name, value]) => [h("dt", null, words(name)), h("dd", null, value === null ? NONE : fact(name, value))]));
  const rows = summaries.map(([key, label]): Child[] => {
    const summary = record[key] as Summary;
    return [label, summary.count.toLocaleString("en"), ...MARKS.map((mark) => quantity(summary[mark], "ns"))];
  });
  const deliveryFirst = Number(record.workload?.["qos"] ?? 0) > 0 || (record.fault_log ?? []).length > 0;
  return [
    h("h3", null, "Figures"),
    deliveryFirst ? counted : null,
    rows.length === 0 ? null : plainTable("Latencies of the run", ["kind", number("count"), ...MARKS.map((mark) => number(mark === "p999" ? "p99.9" : mark))], rows),
    record.schema > 1 ? null : h("p", { class: "muted" }, "Recorded by pubmark 0.1: its latency contains the generator delay."),
    paced(record),
    deliveryFirst ? null : counted,
  ];
}

/** How publishers waited for their due times. */
function paced({ pacing, machine }: RunRecord): Child {
  const awake = machine?.awake ? " Processors were kept awake by an idle-class spinner." : "";
  if (!pacing) return awake === "" ? null : h("p", null, awake.trim());
  return h("p", { class: "pacing" }, `Pacing: publishers woke up ${quantity(pacing.margin_ns, "ns")} before their due times and waited awake, which took ${quantity(pacing.spent_cores, "cores")} of a budget of ${quantity(pacing.budget_cores, "cores")} processors.${awake}`);
}

/** A field's name as words: its unit is in the value. */
const words = (name: string): string => clean(name.replace(/_(ns|per_s|s)$/, (_, unit: string) => (unit === "per_s" ? " per second" : "")).replaceAll("_", " "), 80);

function faults(record: RunRecord): Child {
  const log = record.fault_log ?? [];
  if (log.length === 0) return null;
  const at = (ns: number | null): string => (ns === null ? "never" : quantity(ns, "ns"));
  const rows = log.map((event): Child[] => [clean(event.what, 40), clean(event.who, 40), at(event.at_ns), at(event.until_ns), clean(event.note ?? "", 300)]);
  return [h("h3", null, "Faults"), plainTable("Faults, from the window's beginning", ["what", "whom", number("at"), number("until"), "note"], rows), cost(record.recovery)];
}

/** What they cost beyond what was asked for. */
function cost(recovery: RunRecord["recovery"]): Child {
  if (!recovery) return null;
  const { caught_up_after_ns: caughtUp, watched_ns: watched, clients_not_back: notBack } = recovery;
  const facts: [string, number | null | undefined][] = [
    ["longest silence of a subscriber", recovery.silence_ns],
    ["that less the time asked for", recovery.beyond_ns],
    ["caught up, from the fault's end", caughtUp],
    ["server listened, from its start", recovery.listens_after_ns],
    ["all clients back, from the fault's end", recovery.clients_back_after_ns],
  ];
  const known = facts.flatMap(([name, ns]): [string, string][] => (typeof ns === "number" ? [[name, quantity(ns, "ns")]] : []));
  if (typeof caughtUp !== "number" && typeof watched === "number") known.push(["caught up, from the fault's end", `not within ${quantity(watched, "ns")}`]);
  if (typeof notBack === "number" && notBack > 0) known.push(["connections not had again", notBack.toLocaleString("en")]);
  return h("dl", { class: "facts" }, known.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

function phases({ phases }: RunRecord): Child {
  if (!phases) return null;
  const all: [string, number][] = [["warm-up", phases.warmup_ns], ["window", phases.window_ns], ["drain", phases.drain_ns]];
  return [
    h("h3", null, "Phases"),
    h("div", { class: "phasebar", "aria-hidden": "true" }, all.map(([name, ns]) => h("span", { class: name, style: `flex-grow:${Math.max(ns, 0) || 0}` }))),
    h("p", { class: "muted" }, all.map(([name, ns]) => `${name} ${quantity(ns, "ns")}`).join(", ")),
  ];
}

function usage(record: RunRecord): Child {
  const agents = (record["agents"] as { name: string; agent?: { name: string; version: string } | null; usage: Usage; pauses?: { count: number; longest_ns: number } }[] | undefined) ?? [];
  const lines: [string, Usage | null, string][] = [
    ["server", record.server, ""],
    ["generator, library included", record.generator, ""],
    ...agents.map((agent): [string, Usage, string] => [`agent: ${clean(agent.name, 60)}${agent.agent ? `, ${clean(agent.agent.name, 60)} ${clean(agent.agent.version, 60)}` : ""}`, agent.usage, pauses(agent.pauses)]),
  ];
  const rows = lines.filter((line): line is [string, Usage, string] => line[1] !== null).map(([name, use, note]): Child[] => [
    name, quantity(use.cpu_cores, "cores"), `${quantity(use.cpu_s * 1e9, "ns")}`, quantity(use.rss_bytes_median, "bytes"), quantity(use.rss_bytes_max, "bytes"), quantity(use.uss_bytes_median, "bytes"), use.written_bytes === undefined ? NONE : quantity(use.written_bytes, "bytes"), note,
  ]);
  if (rows.length === 0) return null;
  return [
    h("h3", null, "What it used"),
    plainTable("Processor time, memory and bytes written to storage over the window", ["who", number("CPU cores"), number("CPU time"), number("RSS median"), number("RSS max"), number("USS median"), number("written"), "did not run"], rows),
  ];
}

function pauses(pauses: { count: number; longest_ns: number } | undefined): string {
  return pauses && pauses.count > 0 ? `${pauses.count} times, up to ${quantity(pauses.longest_ns, "ns")}` : "";
}

/** What was not as the system's makers have it. */
function settings({ settings }: RunRecord): Child {
  if (!settings) return null;
  const rows = settings.differences.map(({ name, value, stock, why }): Child[] => [
    h("code", null, clean(name, 80)), fact("", value), stock === null ? "no vendor default" : fact("", stock), h("div", { class: "wide" }, clean(why, 300)),
  ]);
  const whose = settings.use === "stock" ? "Vendor defaults (stock)" : "pubmark's recommended settings (tuned)";
  if (rows.length === 0) return h("p", null, `Settings: ${whose}; none differs from the vendor default.`);
  return fold(`Settings: ${clean(settings.use, 20)}`, rows.length, h("p", { class: "muted" }, `${whose}. These differ from the vendor defaults:`), plainTable("Settings that differ from the vendor defaults", ["setting", "value", "vendor default", "why"], rows));
}

/** Options as they were asked for beside what they became. */
function options(record: RunRecord): Child {
  const asked = new Map(flat(record.options));
  const applied = new Map(flat(record.applied));
  const names = [...new Set([...asked.keys(), ...applied.keys()])];
  if (names.length === 0) return null;
  const rows = names.map((name): Child[] => {
    const [was, is] = [asked.has(name) ? fact("", asked.get(name)) : NONE, applied.has(name) ? fact("", applied.get(name)) : NONE];
    const differs = asked.has(name) && applied.has(name) && was !== is;
    return [h("code", null, clean(name, 80)), was, differs ? [is, " ", badge("differs", "warn")] : is];
  });
  return fold("Options", rows.length, plainTable("Options as asked for and as applied", ["option", "asked", "applied"], rows));
}

function facts(title: string, value: unknown): Child {
  const all = flat(value as Record<string, unknown> | null).filter(([, one]) => one !== undefined);
  if (all.length === 0) return null;
  return fold(title, all.length, h("dl", { class: "facts" }, all.map(([name, one]) => [h("dt", null, clean(name.replaceAll("_", " ").replace(/ ns$/, ""), 80)), h("dd", null, name === "steal" ? quantity(Number(one), "share") : fact(name, one))])));
}

const fold = (title: string, count: number, ...body: Child[]): HTMLElement =>
  h("details", null, h("summary", null, h("h3", null, title), h("span", { class: "muted" }, ` ${count}`)), body);

function list(title: string, all: string[] | undefined): Child {
  if (!all || all.length === 0) return null;
  return fold(title, all.length, h("ul", null, all.slice(0, 200).map((one) => h("li", null, clean(one, 1_000)))));
}

/** Excerpts of logs, where the record has any: text, a list of lines, or both by name. */
function logs(record: RunRecord): Child {
  const found = record["logs"] ?? record["log"];
  if (found === null || found === undefined) return null;
  const named = typeof found === "object" && !Array.isArray(found) ? Object.entries(found as Record<string, unknown>) : [["log", found] as const];
  const text = (value: unknown): string => cleanLines(Array.isArray(value) ? value.map(String).join("\n") : String(value));
  return named.map(([name, value]) => fold(`Log: ${clean(name, 60)}`, text(value).split("\n").length, h("pre", { tabindex: "0" }, text(value))));
}
