import { barTable } from "../charts/bartable";
import { label } from "../charts/clean";
import { follow, refill, select } from "../charts/controls";
import { slices, type Slice } from "../charts/slicing";
import type { Context } from "../context";
import { h, type Child } from "../dom";
import { cardsOf, type Card, type CutAt, type View } from "./cardviews";

/** Values of an axis that are shown as tabs; more are chosen from a list. */
const TABS_MAX = 8;
/** Axes that become tabs, the first that varies. */
const TAB_AXES = ["transport", "rate", "pairs", "publishers", "clients", "connections", "subscribers", "payload"];

/** A card for each figure that was measured: its answer over bars. Null where none was. */
export function cards(context: Context): HTMLElement | null {
  const all = cardsOf(context);
  if (all.length === 0) return null;
  const bar = h("div", { class: "slice-bar", role: "group", "aria-label": "Cards are cut at" });
  const boxes = all.map((card) => box(context, card));
  const element = h("div", { class: "answers" }, bar, h("div", { class: "cards", "data-count": String(all.length) }, boxes.map(({ element }) => element)));
  const redraw = (): void => {
    const cutAt = sharedCut(context, all);
    const tabs = tabAxis(all.map((card) => card.view(null, cutAt)));
    const views = all.map((card) => card.view(tabs, cutAt));
    refill(bar, pickers(context, views.flatMap(({ slices }) => slices), tabs));
    boxes.forEach(({ draw }, index) => draw(views[index]!, tabs));
  };
  redraw();
  follow(context, element, ["slice."], redraw);
  return element;
}

/** Cuts all cards at the same values: those that the reader chose, else those that the
 *  first card with that axis would choose by itself. */
function sharedCut(context: Context, all: Card[]): CutAt {
  const own = new Map<string, string>();
  const cutAt: CutAt = (cells, used, use) => slices(cells, context.result.axes, new Set(used), (axis) => context.state.get(`slice.${axis}`) || (own.get(axis) ?? ""), use);
  for (const card of all) {
    for (const { axis, chosen } of card.view(null, cutAt).slices) if (!own.has(axis.name)) own.set(axis.name, chosen);
  }
  return cutAt;
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
  const place = h("span", { class: "small cut-at" });
  const answer = h("p", { class: "answer" });
  const hint = h("span");
  const counts = h("span", { class: "counts-line" });
  const footer = h("footer", { class: "small" }, hint, counts);
  const choice = h("div", { class: "choice" });
  const panel = h("div", { id: `card-${id}-panel` });
  const heading = h("h3", { id: `card-${id}` }, title);
  const element = h("article", { class: "answer-card", "data-card": id, "aria-labelledby": heading.id }, h("header", null, heading, about, place), answer, choice, panel, footer);
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
    place.textContent = view.place;
    answer.textContent = view.answer;
    refill(panel, view.rows.length > 0 && barTable(context, `${title}: ${view.answer}`, view.heads, view.rows, whole));
    for (const [line, text] of [[hint, view.hint], [counts, view.counts]] as const) {
      line.textContent = text;
      line.hidden = text === "";
    }
    footer.hidden = hint.hidden && counts.hidden;
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
