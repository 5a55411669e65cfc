import { answerWords, countWords, lossWords, type Verbs } from "../answer";
import { barTable, type BarRow } from "../charts/bartable";
import { label } from "../charts/clean";
import { follow, refill, select } from "../charts/controls";
import { answer as capacityAnswer, load } from "../charts/knees";
import { present, type Slice } from "../charts/slicing";
import { absence } from "../charts/tip";
import { quotable, said, value, type Context } from "../context";
import { h, type Child } from "../dom";
import { quantity } from "../format";
import type { Axis, Cell, Point } from "../model";
import { distance } from "../words";
import { cut, cutWords, usefulness, type Cut } from "./slice";

/** Values of an axis that are shown as tabs; more are chosen from a list. */
const TABS_MAX = 8;
/** Axes that become tabs, the first that varies. */
const TAB_AXES = ["transport", "rate", "pairs", "publishers", "clients", "connections", "subscribers", "payload"];

/** What a card shows at the moment. */
interface View {
  slices: Slice[];
  answer: string;
  /** What would help, or what is missing; empty for nothing. */
  hint: string;
  /** What the bars are, and where they are cut. */
  about: string;
  /** Who is best at all points; empty for one. */
  counts: string;
  heads: { name: string; value: string; also: string };
  rows: BarRow[];
}

interface Card {
  id: string;
  title: string;
  /** `tabs`: the axis that is chosen by tabs, if any. */
  view(tabs: string | null): View;
}

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

/** A card for each figure that was measured: its answer over bars. Null where none was. */
export function cards(context: Context): HTMLElement | null {
  const all = cardsOf(context);
  if (all.length === 0) return null;
  const bar = h("div", { class: "slice-bar", role: "group", "aria-label": "Cards are cut at" });
  const boxes = all.map((card) => box(context, card));
  const element = h("div", { class: "answers" }, bar, h("div", { class: "cards", "data-count": String(all.length) }, boxes.map(({ element }) => element)));
  const redraw = (): void => {
    const tabs = tabAxis(all.map((card) => card.view(null)));
    const views = all.map((card) => card.view(tabs));
    refill(bar, pickers(context, views.flatMap(({ slices }) => slices), tabs));
    boxes.forEach(({ draw }, index) => draw(views[index]!, tabs));
  };
  redraw();
  follow(context, element, ["slice."], redraw);
  return element;
}

function cardsOf(context: Context): Card[] {
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

/** The axis that becomes tabs: of those at which some card is cut. */
function tabAxis(views: View[]): string | null {
  const slices = views.flatMap((view) => view.slices).filter(({ options }) => options.length <= TABS_MAX);
  return TAB_AXES.find((name) => slices.some(({ axis }) => axis.name === name)) ?? slices[0]?.axis.name ?? null;
}

/** Lists for the axes that are not chosen by tabs. */
function pickers(context: Context, slices: Slice[], tabs: string | null): Child {
  const axes = new Map<string, Slice>();
  for (const slice of slices) {
    if (slice.axis.name === tabs && slice.options.length <= TABS_MAX) continue;
    const known = axes.get(slice.axis.name);
    const options = known === undefined ? slice.options : slice.axis.values.map(({ label }) => label).filter((one) => known.options.includes(one) || slice.options.includes(one));
    axes.set(slice.axis.name, { ...(known ?? slice), options });
  }
  if (axes.size === 0) return null;
  return [h("span", { class: "at" }, "At"), [...axes.values()].map(({ axis, options, chosen }) => select(context, `slice.${axis.name}`, axis.label, options.map((option) => [option, option]), chosen))];
}

/** A card and how it is filled. */
function box(context: Context, { id, title }: Card): { element: HTMLElement; draw(view: View, tabs: string | null): void } {
  const about = h("span", { class: "small" });
  const answer = h("p", { class: "answer" });
  const hint = h("p", { class: "small" });
  const counts = h("p", { class: "small counts-line" });
  const choice = h("div", { class: "choice" });
  const panel = h("div", { id: `card-${id}-panel` });
  const heading = h("h3", { id: `card-${id}` }, title);
  const element = h("article", { class: "card", "data-card": id, "aria-labelledby": heading.id }, h("header", null, heading, about), answer, choice, panel, hint, counts);
  const whole = { is: false };
  const draw = (view: View, tabs: string | null): void => {
    const slice = view.slices.find(({ axis, options }) => axis.name === tabs && options.length <= TABS_MAX);
    const had = choice.contains(document.activeElement);
    refill(choice, slice !== undefined && tabList(context, id, slice, panel.id));
    choice.hidden = slice === undefined;
    if (slice === undefined) for (const name of ["role", "aria-labelledby"]) panel.removeAttribute(name);
    else {
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tabId(id, slice.options.indexOf(slice.chosen)));
    }
    if (had) choice.querySelector<HTMLElement>('[aria-selected="true"]')?.focus({ preventScroll: true });
    about.textContent = view.about;
    answer.textContent = view.answer;
    refill(panel, barTable(context, `${title}: ${view.answer}`, view.heads, view.rows, whole));
    for (const [line, text] of [[hint, view.hint], [counts, view.counts]] as const) {
      line.textContent = text;
      line.hidden = text === "";
    }
  };
  return { element, draw };
}

const tabId = (card: string, index: number): string => `card-${card}-tab-${index}`;

/** Tabs as WAI-ARIA has them: one stop, and arrows, Home and End choose. */
function tabList(context: Context, card: string, { axis, options, chosen }: Slice, panel: string): HTMLElement {
  const choose = (index: number): void => context.state.set(`slice.${axis.name}`, options.at(index % options.length)!);
  const at = (): number => {
    const asked = options.indexOf(context.state.get(`slice.${axis.name}`));
    return asked >= 0 ? asked : options.indexOf(chosen);
  };
  const keys: Record<string, () => number> = { ArrowRight: () => at() + 1, ArrowLeft: () => at() - 1, Home: () => 0, End: () => -1 };
  const press = (event: Event): void => {
    const to = keys[(event as KeyboardEvent).key];
    if (to === undefined || (event as KeyboardEvent).ctrlKey || (event as KeyboardEvent).altKey || (event as KeyboardEvent).metaKey) return;
    event.preventDefault();
    choose(to());
  };
  return h(
    "div",
    { role: "tablist", "aria-label": label(axis.label), onkeydown: press },
    options.map((option, index) => h("button", {
      type: "button", role: "tab", id: tabId(card, index), "aria-controls": panel, "aria-selected": option === chosen ? "true" : "false", tabindex: option === chosen ? "0" : "-1",
      onclick: () => choose(index),
    }, label(option, 24))),
  );
}

/** ` over ipc`, ` at rate 1000`: where a card is cut by its tabs. */
function where({ slices }: Cut, tabs: string | null): string {
  const slice = slices.find(({ axis }) => axis.name === tabs);
  if (slice === undefined) return "";
  return slice.axis.name === "transport" ? ` over ${label(slice.chosen)}` : ` at ${label(slice.axis.label)} ${label(slice.chosen)}`;
}

/** `median, lower is better; at payload 1KiB`: without what the tabs say. */
function aboutWords(about: string, { slices }: Cut, tabs: string | null): string {
  const words = cutWords(slices.filter(({ axis }) => axis.name !== tabs));
  return words === "" ? about : `${about}; at ${words}`;
}

function competes({ result }: Context, cell: Cell): boolean {
  return result.systems.find(({ name }) => name === cell.system)?.kind !== "reference";
}

/** A card of a figure by which systems are ranked. */
function figureCard(context: Context, question: Question, cells: Cell[]): Card {
  const { key, verbs } = question;
  const competing = cells.filter((cell) => competes(context, cell));
  const rivals = competing.length > 0 ? competing : cells;
  const systems = new Set(rivals.map(({ system }) => system));
  const counts = (): string => countWords([...new Set(rivals.map(({ point }) => point))].map((point) => context.result.points[point]!.ranks[key]));
  return {
    id: question.id,
    title: question.title,
    view(tabs) {
      const axis = context.result.axes.find(({ name }) => name === tabs);
      // One system has nobody to be compared with: its loads are.
      if (systems.size === 1 && axis !== undefined && present(axis, rivals).length > 1) return alone(context, question, rivals, axis);
      const found = cut(context, cells, [], usefulness(key));
      const shown = found.cells;
      const point = shown[0] && context.result.points[shown[0].point];
      const rows = ordered(context, question, shown, point);
      const place = where(found, tabs);
      const values = rows.filter(({ isReference }) => !isReference || competing.length === 0).map(({ system, text, isReliable }) => ({ system, text, isReliable }));
      return {
        slices: found.slices,
        answer: competing.length === 0 && values.length > 1 ? "references are not ranked" : answerWords(verbs, { rank: point?.ranks[key], lead: point?.leads?.[key] ?? null, where: place, values }),
        hint: hint(context, point, key, shown),
        about: aboutWords(question.about, found, tabs),
        counts: counts(),
        heads: { name: "system", value: context.figure(key).label, also: question.also },
        rows,
      };
    },
  };
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

/** A row a system: candidates first, as they are ranked, then by value; references last. */
function ordered(context: Context, question: Question, cells: Cell[], point: Point | undefined): BarRow[] {
  const { better } = context.figure(question.key);
  const best = point?.ranks[question.key]?.systems ?? [];
  const place = ({ system, isReference, isReliable }: BarRow): number => {
    const at = best.indexOf(system);
    return isReference ? 3e6 : at >= 0 ? at : isReliable ? 1e6 : 2e6;
  };
  const rows = cells.map((cell) => rowOf(context, question, cell, cell.system, point));
  return rows.sort((a, b) => place(a) - place(b) || (better === "higher" ? b.value - a.value : a.value - b.value));
}

/** What would decide it, and who has no value. */
function hint(context: Context, point: Point | undefined, key: string, shown: Cell[]): string {
  if (point === undefined) return "";
  const rank = point.ranks[key];
  const more = rank?.repeats_more ?? null;
  const why = rank?.kind === "open" && rank.why !== null && more === null ? `${label(rank.why, 120)}.` : "";
  const decides = rank?.kind === "open" && more !== null ? `About ${more} more ${more === 1 ? "repeat" : "repeats"} may decide.` : "";
  const absent = point.cells.map((index) => context.result.cells[index]!).filter((cell) => competes(context, cell) && !shown.includes(cell));
  const missing = absent.map((cell) => `${label(cell.system, 24)}: ${cell.status === "failed" || cell.status === "skipped" ? cell.status : absence(cell)}`);
  return [decides, capitalised(why), missing.length === 0 ? "" : `Not shown: ${missing.slice(0, 3).join("; ")}${missing.length > 3 ? `; ${missing.length - 3} more` : ""}.`].filter((part) => part !== "").join(" ");
}

const capitalised = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

/** The card of a study with one system: a bar for each value of an axis. */
function alone(context: Context, question: Question, cells: Cell[], axis: Axis): View {
  const { key, verbs } = question;
  const found = cut(context, cells, [axis.name], usefulness(key));
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
  return { slices: found.slices, answer, hint: "", about: aboutWords(question.about, found, axis.name), counts: "", heads: { name: axis.label, value: context.figure(key).label, also: question.also }, rows };
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
  // The first that is shown has losses.
  const use = (cell: Cell): number => ((value(cell, key) ?? 0) > 0 ? 1 : 0.001);
  return [{
    id: question.id,
    title: question.title,
    view(tabs) {
      const found = cut(context, cells, [], use);
      const rows = ordered(context, question, found.cells, undefined);
      const own = rows.filter(({ isReference }) => !isReference);
      const lossy = own.filter((row) => row.value > 0).sort((a, b) => b.value - a.value).map(({ system }) => system);
      return {
        slices: found.slices,
        answer: lossWords(lossy, own.length, where(found, tabs)),
        hint: "",
        about: aboutWords(question.about, found, tabs),
        counts: "",
        heads: { name: "system", value: context.figure(key).label, also: question.also },
        rows,
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
  const heads = { name: "system", value: "holds up to", also: "what gave out first" };
  return {
    id: "capacity",
    title: "Capacity",
    view(tabs) {
      const searched = points.filter(({ searches }) => (searches ?? []).length > 0);
      if (isSearch) {
        const rows = capacities.map((search, index) => row(index, search.label)).sort((a, b) => b.value - a.value);
        const best = capacities[0]!;
        const winner = capacities.find(({ standing }) => standing === "winner");
        const answer = capacities.length === 1 ? `${label(best.system, 24)}: ${capacityAnswer(best)}` : winner === undefined ? `${capacities.length} searches, none shown to carry most` : `${label(winner.label, 40)} carries most`;
        return { slices: [], answer, hint: "", about, counts: "", heads: { ...heads, name: "search" }, rows };
      }
      const own = cells.filter((cell) => (points[cell.point]?.searches ?? []).length > 0);
      const found = cut(context, own, [], () => 1);
      const point = found.cells[0] && points[found.cells[0].point];
      const rows = (point?.searches ?? []).map((index) => row(index, capacities[index]!.system)).sort((a, b) => Number(a.isReference) - Number(b.isReference) || b.value - a.value);
      const values = rows.filter(({ isReference }) => !isReference).map(({ system, text }) => ({ system, text, isReliable: text !== "–" }));
      return {
        slices: found.slices,
        answer: answerWords(CARRIES, { rank: point?.capacity, lead: null, where: where(found, tabs), values }),
        hint: "",
        about: aboutWords(about, found, tabs),
        counts: countWords(searched.map(({ capacity }) => capacity)),
        heads,
        rows,
      };
    },
  };
}
