import type { Context } from "../context";
import { link, unique } from "../controls";
import { h, type Child } from "../dom";
import { dot } from "../words";
import { label } from "./clean";

/** A bar with its value: a row of a table, so that it needs no other text alternative. */
export interface BarRow {
  /** What the row is of: a system, or a value of an axis. */
  name: string;
  /** Gives the colour. */
  system: string;
  /** Whose evidence the name opens; null for none. */
  cell: number | null;
  value: number;
  lo: number | null;
  hi: number | null;
  /** The value. */
  text: string;
  /** Its interval in words; empty for none. */
  interval: string;
  /** A second figure beside it; empty for none. */
  also: string;
  /** Where it stands: `winner`, `behind ≥ 1.4×`. */
  standing: string;
  isBest: boolean;
  isReliable: boolean;
  isReference: boolean;
}

/** The heads of the columns, for those who hear them. */
export interface Heads {
  name: string;
  value: string;
  interval: string;
  also: string;
}

/** Rows that are shown before the others are asked for. */
export const ROWS = 6;
/** How far beyond the longest bar an interval may reach before it is cut off, as a multiple. */
const REACH = 1.5;

/** Returns the value at the end of the bars' track: the longest bar and the intervals fit
 *  in it, but one wide interval makes no bar unreadably short. */
export function trackEnd(rows: readonly Pick<BarRow, "value" | "hi">[]): number {
  const longest = rows.reduce((most, { value }) => Math.max(most, value), 0);
  const reach = rows.reduce((most, { hi }) => Math.max(most, hi ?? 0), longest);
  return Math.min(reach, longest * REACH) || 1;
}

const share = (value: number, end: number): string => `${(100 * Math.min(1, Math.max(0, value / end))).toFixed(2)}%`;

/** Draws the bars, the first of `rows` first. */
export function barTable(context: Context, caption: string, heads: Heads, rows: readonly BarRow[], whole: { is: boolean }): HTMLElement {
  const end = trackEnd(rows);
  const hasAlso = rows.some(({ also }) => also !== "");
  const shown = rows.length <= ROWS + 1 ? rows : rows.slice(0, ROWS);
  const rest = rows.slice(shown.length);
  const more = h("tbody", { id: unique("more"), class: "more", hidden: !whole.is }, rest.map((row) => rowOf(context, row, end, hasAlso)));
  const table = h(
    "table",
    { class: "bars" },
    h("caption", { class: "unseen" }, caption),
    h("thead", { class: "unseen" }, h("tr", null, [heads.name, heads.interval, heads.value, ...(hasAlso ? [heads.also] : [])].map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", null, shown.map((row) => rowOf(context, row, end, hasAlso))),
    rest.length > 0 && more,
  );
  if (rest.length === 0) return table;
  const words = (): string => (whole.is ? "Fewer" : `${rest.length} more`);
  const button = h("button", {
    type: "button", class: "link small", "aria-expanded": String(whole.is), "aria-controls": more.id,
    onclick: () => {
      whole.is = !whole.is;
      more.hidden = !whole.is;
      button.setAttribute("aria-expanded", String(whole.is));
      button.textContent = words();
    },
  }, words());
  return h("div", null, table, button);
}

function rowOf(context: Context, row: BarRow, end: number, hasAlso: boolean): HTMLElement {
  const { value, lo, hi, isReliable, isReference } = row;
  const name: Child = [dot(context.page, row.system), label(row.name, 40)];
  const said = [row.interval, row.standing, isReliable ? "" : "unreliable"].filter((part) => part !== "").join(", ");
  const bar = h(
    "span",
    { class: "track", "aria-hidden": "true" },
    h("span", { class: "fill", style: `width:${share(value, end)}` }),
    lo !== null && hi !== null && hi > lo && h("span", { class: hi > end ? "whisker cut" : "whisker", style: `left:${share(lo, end)};right:calc(100% - ${share(hi, end)})` }),
  );
  bar.style.cssText = dotColours(context, row.system);
  return h(
    "tr",
    { class: [row.isBest && "best", !isReliable && "unreliable", isReference && "reference"].filter(Boolean).join(" "), title: said === "" ? null : `${row.name}: ${row.text} (${said})` },
    h("th", { scope: "row" }, row.cell === null ? h("span", { class: "name" }, name) : link(name, () => context.evidence(row.cell!), { class: "link name" })),
    h("td", null, bar, h("span", { class: "unseen" }, said === "" ? "none" : said)),
    h("td", { class: "number" }, isReliable ? null : h("span", { "aria-hidden": "true" }, "! "), row.text),
    hasAlso && h("td", { class: "also" }, row.also),
  );
}

/** A system's colours in either theme, as the style of a dot has them. */
function dotColours(context: Context, system: string): string {
  return dot(context.page, system).getAttribute("style") ?? "";
}
