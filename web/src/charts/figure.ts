import type { Context } from "../context";
import { fill, h, type Child } from "../dom";
import { label } from "./clean";
import { hidden, hide } from "./controls";
import { compose, fileName, png, save, svgText } from "./export";
import { swatch } from "./mark";
import { csv, type Table } from "./table";
import type { Theme } from "./theme";

/** What a chart gives when it is downloaded. */
export interface Picture {
  /** Where it is another than that of the menu. */
  title?: string;
  drawing: SVGElement;
  width: number;
  height: number;
  systems: string[];
  theme: Theme;
}

/** The systems of a chart as buttons that hide and show them, in all charts. */
export function legend(context: Context, systems: string[], theme: Theme, onlyHidden: boolean): HTMLElement | null {
  const away = hidden(context);
  const listed = systems.filter((system) => !onlyHidden || away.has(system));
  if (listed.length === 0) return null;
  return h(
    "ul",
    { class: "legend", "aria-label": onlyHidden ? "Systems hidden" : "Systems shown" },
    onlyHidden && h("li", { class: "key" }, "Hidden:"),
    listed.map((system) => {
      const shown = !away.has(system);
      const button = h(
        "button",
        {
          type: "button", "data-control": `hide.${system}`, "aria-pressed": shown ? "true" : "false",
          onclick: () => hide(context, system, shown),
        },
        swatch(theme.look(system)),
        h("span", null, label(system)),
      );
      return h("li", null, button);
    }),
  );
}

/** The menu of downloads. */
export function downloads(context: Context, id: string, title: string, picture: () => Picture | null, table: () => Table | null): HTMLElement {
  const name = (ending: string) => `${fileName(context.result.name, id)}.${ending}`;
  const drawn = (): SVGElement | null => {
    const it = picture();
    return it && compose(it.drawing, it.width, it.height, `${label(context.result.title, 80)}: ${it.title ?? title}`, it.systems, it.theme);
  };
  const note = h("span", { class: "status", role: "status" });
  const item = (text: string, act: () => void) =>
    h("li", null, h("button", { type: "button", onclick: () => { act(); menu.open = false; } }, text));
  const menu = h(
    "details",
    { class: "menu", onkeydown: closeOnEscape, onfocusout: closeWhenLeft },
    h("summary", { "aria-label": `Download: ${title}` }, "Download"),
    h(
      "ul",
      null,
      item("SVG", () => {
        const drawing = drawn();
        if (drawing) save(name("svg"), new Blob([svgText(drawing)], { type: "image/svg+xml" }));
      }),
      item("PNG", () => {
        const drawing = drawn();
        if (drawing) png(drawing).then((blob) => save(name("png"), blob), () => fill(note, "This browser made no picture of it; the SVG holds the same."));
      }),
      item("CSV", () => {
        const numbers = table();
        if (numbers) save(name("csv"), new Blob([csv(numbers)], { type: "text/csv" }));
      }),
    ),
  );
  return h("div", { class: "downloads" }, menu, note);
}

function closeOnEscape(event: Event): void {
  const menu = event.currentTarget as HTMLDetailsElement;
  if ((event as KeyboardEvent).key !== "Escape" || !menu.open) return;
  event.stopPropagation();
  menu.open = false;
  menu.querySelector("summary")?.focus();
}

function closeWhenLeft(event: Event): void {
  const menu = event.currentTarget as HTMLDetailsElement;
  const to = (event as FocusEvent).relatedTarget;
  if (to instanceof Node && !menu.contains(to)) menu.open = false;
}

/** The numbers behind a chart, made when they are asked for. */
export function data(title: string, table: () => Table | null): { element: HTMLDetailsElement; renew(): void } {
  const body = h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": `Data: ${title}` });
  const renew = () => {
    if (!element.open) return;
    const numbers = table();
    fill(body, numbers === null ? "There are no numbers." : tableElement(title, numbers));
  };
  const element = h("details", { class: "data", ontoggle: renew }, h("summary", null, "Data"), body);
  return { element, renew };
}

function tableElement(title: string, { columns, rows }: Table): HTMLElement {
  return h(
    "table",
    null,
    h("caption", null, title),
    h("thead", null, h("tr", null, columns.map((column) => h("th", { scope: "col" }, label(column, 60))))),
    h(
      "tbody",
      null,
      rows.map((row) =>
        h("tr", null, row.map((entry, i): Child => {
          const numeric = typeof entry !== "string";
          const text = numeric ? entry.text : label(entry, 200);
          return i === 0 ? h("th", { scope: "row" }, text) : h("td", { class: numeric ? "number" : null }, text);
        })),
      ),
    ),
  );
}
