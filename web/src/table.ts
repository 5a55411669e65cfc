/** A table that is sorted by any column and shows a page of rows at a time:
 *  thousands of rows cost no more than a hundred. */
import { scroller, unique } from "./controls";
import { fill, h, type Child } from "./dom";
import { orderText, parseOrder, sorted, turned, type Order, type Sortable } from "./order";
import type { State } from "./state";
import { many } from "./text";

export interface Column<T> {
  key: string;
  label: string;
  /** What it is, in a sentence. */
  about?: string;
  numeric?: boolean;
  sort(row: T): Sortable;
  cell(row: T): Child;
}

export interface TableOptions<T> {
  /** Prefix of the state's keys: `ID.sort` and `ID.page`. */
  id: string;
  caption: string;
  columns: Column<T>[];
  state: State;
  /** What a row opens. */
  open?: (row: T) => void;
  class?: (row: T) => string;
  /** Heading of a row's group; used while no column sorts. */
  group?: (row: T) => string;
}

/** Rows shown at a time. */
export const PAGE_ROWS = 100;

export class Table<T> {
  readonly element: HTMLElement;
  private rows: readonly T[] = [];
  private readonly head = h("thead");
  private readonly table: HTMLTableElement;
  private readonly pager = h("div", { class: "pager" });
  private readonly captionId = unique("caption");

  constructor(private readonly options: TableOptions<T>) {
    this.table = h("table", { class: "grid", "aria-labelledby": this.captionId }, h("caption", { id: this.captionId, class: "unseen" }, options.caption), this.head);
    const box = scroller(options.caption, this.table);
    this.element = h("div", { class: "tablebox" }, box, this.pager);
    // Heads can stay in view only where the box need not scroll sideways.
    new ResizeObserver(() => {
      const fits = this.table.offsetWidth <= box.clientWidth;
      box.classList.toggle("fits", fits);
      if (fits) box.removeAttribute("tabindex");
      else box.tabIndex = 0;
    }).observe(this.table);
    options.state.subscribe((changed) => {
      if (changed.has(`${options.id}.sort`) || changed.has(`${options.id}.page`)) this.draw();
    });
  }

  /** Shows other rows, from the first page on. */
  show(rows: readonly T[], keepPage = false): void {
    this.rows = rows;
    if (!keepPage) this.options.state.set(`${this.options.id}.page`, "");
    this.draw();
  }

  private draw(): void {
    const { columns, state, id, group } = this.options;
    const order = parseOrder(state.get(`${id}.sort`));
    const column = columns.find((column) => column.key === order?.key);
    const rows = column === undefined ? this.rows : sorted(this.rows, column.sort, order!.down);
    const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
    const page = Math.min(pages - 1, Math.max(0, Math.floor(Number(state.get(`${id}.page`)) || 0)));
    const shown = rows.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS);
    fill(this.head, h("tr", null, columns.map((one) => this.heading(one, order))));
    this.table.replaceChildren(this.table.caption!, this.head, ...this.bodies(shown, column === undefined ? group : undefined));
    fill(this.pager, this.pages(rows.length, page, pages));
  }

  private heading(column: Column<T>, order: Order | null): HTMLElement {
    const mine = order?.key === column.key;
    const key = `${this.options.id}.sort`;
    const press = (): void => {
      this.options.state.set(`${this.options.id}.page`, "");
      this.options.state.set(key, orderText(turned(order, column.key)));
      // The head was drawn anew: the pressed button's successor takes the focus.
      this.head.querySelectorAll<HTMLElement>("button")[this.options.columns.indexOf(column)]?.focus();
    };
    return h(
      "th",
      { scope: "col", class: column.numeric ? "number" : null, "aria-sort": mine ? (order.down ? "descending" : "ascending") : null },
      h("button", { type: "button", class: "sort", title: column.about, onclick: press }, column.label, h("span", { "aria-hidden": "true", class: "arrow" }, mine ? (order.down ? "↓" : "↑") : "")),
    );
  }

  private bodies(rows: readonly T[], group?: (row: T) => string): HTMLElement[] {
    if (rows.length === 0) return [h("tbody", null, h("tr", null, h("td", { colspan: this.options.columns.length, class: "nothing" }, "nothing fits")))];
    const bodies: HTMLElement[] = [];
    let heading: string | null = null;
    for (const row of rows) {
      const name = group?.(row) ?? null;
      if (bodies.length === 0 || name !== heading) {
        heading = name;
        const title = name === null ? null : h("tr", { class: "group" }, h("th", { scope: "rowgroup", colspan: this.options.columns.length }, h("span", null, name)));
        bodies.push(h("tbody", null, title));
      }
      bodies.at(-1)!.append(this.row(row));
    }
    return bodies;
  }

  private row(row: T): HTMLElement {
    const { columns, open } = this.options;
    const click = (event: Event): void => {
      const inner = event.target instanceof Element && event.target.closest("button, a, input, summary");
      if (!inner && window.getSelection()?.type !== "Range") open?.(row);
    };
    return h(
      "tr",
      { class: `${this.options.class?.(row) ?? ""}${open ? " opens" : ""}`, onclick: open ? click : null },
      columns.map((column, index) => h(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: column.numeric ? "number" : null }, column.cell(row))),
    );
  }

  private pages(rows: number, page: number, pages: number): Child {
    if (pages === 1) return h("span", { role: "status" }, many(rows, "row"));
    const key = `${this.options.id}.page`;
    const go = (to: number) => (): void => {
      this.options.state.set(key, to === 0 ? "" : String(to));
      this.element.scrollIntoView({ block: "nearest" });
      this.pager.querySelector<HTMLElement>("button:not([disabled])")?.focus({ preventScroll: true });
    };
    const button = (text: string, to: number): HTMLElement => h("button", { type: "button", disabled: to < 0 || to >= pages || to === page, onclick: go(to) }, text);
    return [
      button("First", 0),
      button("Previous", page - 1),
      h("span", { role: "status" }, `${(page * PAGE_ROWS + 1).toLocaleString("en")} to ${Math.min(rows, (page + 1) * PAGE_ROWS).toLocaleString("en")} of ${many(rows, "row")}`),
      button("Next", page + 1),
      button("Last", pages - 1),
    ];
  }
}

/** A small table that is neither sorted nor paged: heads, and rows whose first
 *  cell is their head. */
export function plainTable(caption: string, heads: (string | { label: string; numeric: true })[], rows: Child[][], shown = false): HTMLElement {
  const numeric = heads.map((head) => typeof head !== "string");
  const table = h(
    "table",
    { class: "grid plain" },
    h("caption", { class: shown ? null : "unseen" }, caption),
    h("thead", null, h("tr", null, heads.map((head) => (typeof head === "string" ? h("th", { scope: "col" }, head) : h("th", { scope: "col", class: "number" }, head.label))))),
    h("tbody", null, rows.map((row) => h("tr", null, row.map((cell, index) => h(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: numeric[index] ? "number" : null }, cell))))),
  );
  return scroller(caption, table);
}
