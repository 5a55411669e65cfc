import { answerWords, countWords, lossWords, type Verbs } from "../answer";
import type { BarRow, Heads } from "../charts/bartable";
import { label } from "../charts/clean";
import { answer as capacityAnswer, load } from "../charts/knees";
import { present, type Slice } from "../charts/slicing";
import { absence } from "../charts/tip";
import { quotable, said, value, type Context } from "../context";
import { quantity } from "../format";
import type { Axis, Capacity, Cell, Point } from "../model";
import { distance } from "../words";
import { cutWords, usefulness, type Cut } from "./slice";

/** What a card shows at the moment. */
export interface View {
  slices: Slice[];
  answer: string;
  /** What would help, or what is missing; empty for nothing. */
  hint: string;
  /** What the bars are. */
  about: string;
  /** Where they are cut, but for the tabs; empty for nowhere. */
  place: string;
  /** Who is best at all points; empty for one. */
  counts: string;
  heads: Heads;
  rows: BarRow[];
}

export interface Card {
  id: string;
  title: string;
  /** `tabs`: the axis that is chosen by tabs, if any. */
  view(tabs: string | null, cutAt: CutAt): View;
}

/** Cuts cells at a value of each axis but those that are used, with the same values in all cards. */
export type CutAt = (cells: Cell[], used: string[], use: (cell: Cell) => number) => Cut;

/** A figure that systems are compared by. */
interface Question {
  id: string;
  title: string;
  key: string;
  about: string;
  also: string;
  verbs: Verbs;
  /** The second figure of a row. */
  beside(cell: Cell): string;
}

const arrived = (cell: Cell): string => (cell.figures["delivered_ratio"] ? `${quantity(value(cell, "delivered_ratio")!, "share")} arrived` : "");

const LATENCY: Question = {
  id: "latency", title: "Latency", key: "latency_p50_ns", about: "median, lower is better", also: "99th percentile",
  verbs: { is: "is fastest", may: "may be fastest", tie: "tie for fastest", has: "takes", noun: "latency" },
  beside: (cell) => (cell.figures["latency_p99_ns"] ? `p99 ${quantity(value(cell, "latency_p99_ns")!, "ns")}` : ""),
};
const THROUGHPUT: Question = {
  id: "throughput", title: "Throughput", key: "delivered_per_s", about: "unthrottled, higher is better", also: "share that arrived",
  verbs: { is: "delivers most", may: "may deliver most", tie: "tie for most delivered", has: "delivers", noun: "throughput" },
  beside: arrived,
};
const CPU: Question = {
  id: "cpu", title: "CPU", key: "cpu_ns_per_message", about: "time per message, lower is better", also: "",
  verbs: { is: "uses least CPU", may: "may use least CPU", tie: "tie for least CPU", has: "uses", noun: "CPU time" },
  beside: () => "",
};

/** The cards of a result, in order. */
export function cardsOf(context: Context): Card[] {
  const { result } = context;
  const isSearch = result.capacities.length > 0 && result.points.every(({ searches }) => (searches ?? []).length === 0);
  const capacity = result.capacities.length > 0 ? [capacityCard(context, isSearch)] : [];
  // The steps of a search differ in their load until it fails: only its result is an answer.
  if (isSearch) return capacity;
  const has = (key: string) => (cell: Cell) => cell.figures[key] !== undefined;
  const throttled = result.cells.filter(({ unthrottled }) => !unthrottled);
  const flatOut = result.cells.filter(({ unthrottled }) => unthrottled);
  const cpu = throttled.some(has(CPU.key)) ? throttled : flatOut;
  const asked: [Question, Cell[]][] = [[LATENCY, throttled.filter(has(LATENCY.key))], [THROUGHPUT, flatOut.filter(has(THROUGHPUT.key))], [CPU, cpu.filter(has(CPU.key))]];
  return [...capacity, ...asked.filter(([, cells]) => cells.length > 0).map(([question, cells]) => figureCard(context, question, cells)), ...losses(context)];
}

/** ` over ipc`, ` at rate 1000`: where a card is cut by its tabs. */
function where({ slices }: Cut, tabs: string | null): string {
  const slice = slices.find(({ axis }) => axis.name === tabs);
  if (slice === undefined) return "";
  return slice.axis.name === "transport" ? ` over ${label(slice.chosen)}` : ` at ${label(slice.axis.label)} ${label(slice.chosen)}`;
}

/** `at payload 1KiB`: without what the tabs say. */
function placeWords({ slices }: Cut, tabs: string | null): string {
  const words = cutWords(slices.filter(({ axis }) => axis.name !== tabs));
  return words === "" ? "" : `at ${words}`;
}

function competes({ result }: Context, cell: Cell): boolean {
  return result.systems.find(({ name }) => name === cell.system)?.kind !== "reference";
}

/** A card of a figure by which systems are ranked. */
function figureCard(context: Context, question: Question, cells: Cell[]): Card {
  const { key, verbs } = question;
  const competing = cells.filter((cell) => competes(context, cell));
  const rivals = competing.length > 0 ? competing : cells;
  const asked = context.result.cells.filter((cell) => cell.status !== "skipped" && (competing.length === 0 || competes(context, cell)));
  const systems = new Set(asked.map(({ system }) => system));
  const counts = (): string => countWords([...new Set(rivals.map(({ point }) => point))].map((point) => context.result.points[point]!.ranks[key]));
  return {
    id: question.id,
    title: question.title,
    view(tabs, cutAt) {
      const axis = context.result.axes.find(({ name }) => name === tabs);
      // One system has nobody to be compared with: its loads are.
      if (systems.size === 1 && axis !== undefined && present(axis, rivals).length > 1) return alone(context, question, rivals, axis, cutAt);
      const found = cutAt(cells, [], usefulness(key));
      const shown = found.cells;
      const point = shown[0] && context.result.points[shown[0].point];
      const rows = ordered(context, question, shown, point);
      const place = where(found, tabs);
      const values = rows.filter(({ isReference }) => !isReference || competing.length === 0).map(({ system, text, isReliable }) => ({ system, text, isReliable }));
      return {
        slices: found.slices,
        answer: competing.length === 0 && values.length > 1 ? "references are not ranked" : answerWords(verbs, { rank: point?.ranks[key], lead: point?.leads?.[key] ?? null, where: place, values }),
        hint: hint(context, point, key, shown),
        about: question.about,
        place: placeWords(found, tabs),
        counts: counts(),
        heads: headsOf(context, question, "system"),
        rows,
      };
    },
  };
}

function headsOf(context: Context, { key, also }: Question, name: string): Heads {
  return { name, value: context.figure(key).label, interval: "95 % interval", also };
}

/** A row for a value of a figure. */
function rowOf(context: Context, question: Question, cell: Cell, name: string, point: Point | undefined): BarRow {
  const { key } = question;
  const { unit } = context.figure(key);
  const [amount, lo, hi] = cell.figures[key]!;
  const ranked = point !== undefined && key === (point.unthrottled ? THROUGHPUT.key : LATENCY.key);
  const rank = point?.ranks[key];
  return {
    name, system: cell.system, cell: context.result.cells.indexOf(cell), value: amount, lo, hi,
    text: said(cell, key, amount, unit),
    interval: lo === null || hi === null ? "" : `${quantity(lo, unit)} to ${quantity(hi, unit)}`,
    also: question.beside(cell),
    standing: ranked && point.ranks[key]?.kind !== "unranked" && point.cells.length > 1 ? `${cell.word}${distance(cell)}` : "",
    isBest: rank?.kind === "winner" && rank.systems[0] === cell.system,
    isReliable: quotable(cell, key),
    isReference: !competes(context, cell),
  };
}

/** A row a system: those that may be the best first, then by value; references last. */
function ordered(context: Context, question: Question, cells: Cell[], point: Point | undefined): BarRow[] {
  const { better } = context.figure(question.key);
  const best = point?.ranks[question.key]?.systems ?? [];
  const place = ({ system, isReference, isReliable }: BarRow): number => (isReference ? 3 : best.includes(system) ? 0 : isReliable ? 1 : 2);
  const rows = cells.map((cell) => rowOf(context, question, cell, cell.system, point));
  return rows.sort((a, b) => place(a) - place(b) || (better === "higher" ? b.value - a.value : a.value - b.value));
}

/** Systems without a value that are named for the same reason. */
const ABSENT_NAMED_MAX = 3;
/** More repeats than that nobody makes. */
const REPEATS_SAID_MAX = 100;

/** What would decide it, and who has no value. */
function hint(context: Context, point: Point | undefined, key: string, shown: Cell[]): string {
  if (point === undefined) return "";
  const rank = point.ranks[key];
  const more = rank?.repeats_more ?? null;
  const why = rank?.kind === "open" && rank.why !== null && more === null ? `${label(rank.why, 120)}.` : "";
  const decides = rank?.kind === "open" && more !== null ? (more > REPEATS_SAID_MAX ? `Too close: over ${REPEATS_SAID_MAX} more repeats needed.` : `About ${more} more ${more === 1 ? "repeat" : "repeats"} may decide.`) : "";
  const absent = point.cells.map((index) => context.result.cells[index]!).filter((cell) => competes(context, cell) && !shown.includes(cell));
  const missing = new Map<string, string[]>();
  for (const cell of absent) {
    const reason = cell.status === "failed" || cell.status === "skipped" ? cell.status : absence(cell);
    missing.set(reason, [...(missing.get(reason) ?? []), label(cell.system, 24)]);
  }
  const left = [...missing].map(([reason, systems]) => `${systems.length > ABSENT_NAMED_MAX ? `${systems.length} systems` : systems.join(", ")}: ${reason}`);
  return [decides, capitalised(why), left.length === 0 ? "" : `Not shown: ${left.join("; ")}.`].filter((part) => part !== "").join(" ");
}

const capitalised = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** The card of a study with one system: a bar for each value of an axis. */
function alone(context: Context, question: Question, cells: Cell[], axis: Axis, cutAt: CutAt): View {
  const { key, verbs } = question;
  const found = cutAt(cells, [axis.name], usefulness(key));
  const names = new Map(axis.values.map(({ value, label }, index) => [value, { label, index }]));
  const of = (cell: Cell) => names.get(cell.axes[axis.name] ?? "");
  const rows = [...found.cells].sort((a, b) => (of(a)?.index ?? 0) - (of(b)?.index ?? 0)).map((cell) => ({
    ...rowOf(context, question, cell, of(cell)?.label ?? "", context.result.points[cell.point]), isBest: false, standing: "",
  }));
  const reliable = rows.filter(({ isReliable }) => isReliable);
  const least = reliable.reduce<BarRow | null>((a, b) => (a === null || b.value < a.value ? b : a), null);
  const most = reliable.reduce<BarRow | null>((a, b) => (a === null || b.value > a.value ? b : a), null);
  const system = label(cells[0]!.system, 24);
  const place = axis.name === "transport" ? "over" : `at ${label(axis.label)}`;
  const answer = least === null || most === null
    ? `no reliable ${verbs.noun}`
    : `${system} ${verbs.has} ${least.text}${least === most ? "" : ` to ${most.text}`}, ${least === most ? `${place} ${label(least.name)}` : `least ${place} ${label(least.name)}`}`;
  return { slices: found.slices, answer, hint: "", about: question.about, place: placeWords(found, axis.name), counts: "", heads: headsOf(context, question, axis.label), rows };
}

/** Messages that did not arrive, where there are any that should have: at given rates, or
 *  where delivery is what was asked for. Of unthrottled messages without a guarantee the
 *  card of throughput has the share. */
function losses(context: Context): Card[] {
  const asked = context.result.cells.filter((cell) => !cell.unthrottled || cell.delivery_first);
  const any = (key: string): boolean => asked.some((cell) => (value(cell, key) ?? 0) > 0);
  const key = any("acked_lost") ? "acked_lost" : any("lost") ? "lost" : null;
  if (key === null) return [];
  const question: Question = {
    id: "losses", title: "Losses", key, about: `${key === "lost" ? "messages" : "acknowledged messages"} that did not arrive`, also: "share that arrived",
    verbs: { is: "", may: "", tie: "", has: "", noun: "count" }, beside: arrived,
  };
  const cells = asked.filter((cell) => cell.figures[key] !== undefined);
  const use = (cell: Cell): number => ((value(cell, key) ?? 0) > 0 ? 1 : 0.001);
  const points = new Set(cells.map(({ point }) => point));
  const lossyPoints = new Set(cells.filter((cell) => competes(context, cell) && (value(cell, key) ?? 0) > 0).map(({ point }) => point));
  return [{
    id: question.id,
    title: question.title,
    view(tabs, cutAt) {
      const found = cutAt(cells, [], use);
      const rows = ordered(context, question, found.cells, undefined);
      const own = rows.filter(({ isReference }) => !isReference);
      const lossy = own.filter((row) => row.value > 0).sort((a, b) => b.value - a.value).map(({ system }) => system);
      return {
        slices: found.slices,
        answer: lossWords(lossy, own.length, where(found, tabs)),
        hint: "",
        about: question.about,
        place: placeWords(found, tabs),
        counts: points.size > 1 ? `Lost at ${lossyPoints.size} of ${points.size} points` : "",
        heads: headsOf(context, question, "system"),
        // Bars of nothing say nothing.
        rows: lossy.length > 0 ? rows : [],
      };
    },
  }];
}

const CARRIES: Verbs = { is: "carries most", may: "may carry most", tie: "tie for the highest load", has: "carries", noun: "capacity" };

/** How far an objective holds, by what the searches found. */
function capacityCard(context: Context, isSearch: boolean): Card {
  const { capacities, cells, points } = context.result;
  const row = (index: number, name: string): BarRow => {
    const search = capacities[index]!;
    const { estimate, lo, hi, system, limited_by: by } = search;
    return {
      name, system, cell: null, value: estimate ?? lo ?? 0, lo, hi: hi ?? lo,
      text: estimate === null ? (lo === null ? (hi === null ? "–" : `< ${load(search, hi)}`) : `≥ ${load(search, lo)}`) : search.lower_bound ? `≥ ${load(search, lo ?? estimate)}` : load(search, estimate),
      interval: lo === null || hi === null ? "" : `${load(search, lo)} to ${load(search, hi)}`,
      also: by === null ? "" : label(by, 24), standing: label(search.standing, 24),
      isBest: search.standing === "winner", isReliable: true, isReference: search.standing === "reference",
    };
  };
  const objective = capacities[0]!.until;
  const about = `while ${label(objective, 60)}, higher is better`;
  const heads = { name: "system", value: "holds up to", interval: `${Math.round(capacities[0]!.level * 100)} % interval`, also: "what gave out first" };
  return {
    id: "capacity",
    title: "Capacity",
    view(tabs, cutAt) {
      const searched = points.filter(({ searches }) => (searches ?? []).length > 0);
      if (isSearch) {
        // Of one system only what varies tells the searches apart.
        const isOne = new Set(capacities.map(({ system }) => system)).size === 1;
        const short = ({ label, system }: Capacity): string => (isOne && label.startsWith(`${system} `) ? label.slice(system.length + 1) : label);
        const rows = capacities.map((search, index) => row(index, short(search))).sort((a, b) => b.value - a.value);
        const best = capacities[0]!;
        const winner = capacities.find(({ standing }) => standing === "winner");
        const answer = capacities.length === 1 ? `${label(best.system, 24)}: ${capacityAnswer(best)}` : winner === undefined ? `${capacities.length} searches, none shown to carry most` : `${label(winner.label, 40)} carries most`;
        return { slices: [], answer, hint: "", about, place: "", counts: "", heads: { ...heads, name: "search" }, rows };
      }
      const own = cells.filter((cell) => (points[cell.point]?.searches ?? []).length > 0);
      const found = cutAt(own, [], () => 1);
      const point = found.cells[0] && points[found.cells[0].point];
      const rows = (point?.searches ?? []).map((index) => row(index, capacities[index]!.system)).sort((a, b) => Number(a.isReference) - Number(b.isReference) || b.value - a.value);
      const values = rows.filter(({ isReference }) => !isReference).map(({ system, text }) => ({ system, text, isReliable: text !== "–" }));
      return {
        slices: found.slices,
        answer: answerWords(CARRIES, { rank: point?.capacity, lead: null, where: where(found, tabs), values }),
        hint: "",
        about,
        place: placeWords(found, tabs),
        counts: countWords(searched.map(({ capacity }) => capacity)),
        heads,
        rows,
      };
    },
  };
}
