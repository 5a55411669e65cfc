import "./charts.css";
import type { Context } from "../context";
import { fill, h, type Child } from "../dom";
import { whenIdle } from "../idle";
import { follow, hidden, refill } from "./controls";
import { init, type ECharts, type Option } from "./echarts";
import { data, downloads, legend } from "./figure";
import type { Table } from "./table";
import { theme as themeOf, type Theme } from "./theme";
import { tipElement, type Tip } from "./tip";

/** What a chart may count on when it draws itself. */
export interface Frame {
  theme: Theme;
  /** px */
  width: number;
  hidden: ReadonlySet<string>;
}

/** A chart as it is at the moment. */
export interface Drawing {
  option: Option;
  /** px */
  height: number;
  table: Table;
  /** Those in the legend; empty for none. */
  systems: string[];
  /** Whether the chart itself names its systems: then the legend has only those
   *  that are hidden, to bring them back. */
  named?: boolean;
  caption: Child[];
  /** What is not in the chart, and why. */
  absent?: Child[];
}

export interface ChartSpec {
  id: string;
  title: string;
  /** The title of the chart as it is at the moment, where it depends on a choice. */
  heading?(): string;
  /** State that it depends on, beside what all charts do. */
  keys?: string[];
  controls?(): Child[];
  /** The chart, or why there is none. */
  draw(frame: Frame): Drawing | string;
}

/** State on which all charts depend. */
export const SHARED = ["slice.", "log.", "from", "floor", "x", "figure", "hide", "theme", "result"];

/** Whether the page is being printed, and the charts that are on it. A chart may
 *  come to be while the page is made ready for paper. */
let printing = false;
const onPage = new Set<Chart>();
for (const [event, on] of [["beforeprint", true], ["afterprint", false]] as const) {
  window.addEventListener(event, () => {
    printing = on;
    for (const one of onPage) one.print();
  });
}

/** Width of a chart on paper, px: that of A4 within its margins. */
const PAPER_WIDTH = 688;

/** A chart is drawn when it is so near to what is seen, px. */
const NEAR = 600;

/** Largest result of which all charts are drawn before anybody looks at them, cells:
 *  so that they are there for a picture of the page. A page that is made anew after
 *  every run draws only what is seen. */
const AHEAD_CELLS_MAX = 600;

/** Charts that are to be drawn ahead, in the order of the page, one in an idle moment. */
const ahead: Chart[] = [];

function drawAhead(one: Chart): void {
  ahead.push(one);
  if (ahead.length > 1) return;
  const next = (): void => {
    ahead[0]?.look();
    ahead.shift();
    if (ahead.length > 0) whenIdle(next);
  };
  whenIdle(next);
}

// What is folded is not drawn again until it is unfolded. `toggle` does not bubble.
document.addEventListener("toggle", ({ target }) => {
  if (target instanceof HTMLDetailsElement && target.open) for (const one of onPage) if (target.contains(one.figure)) one.unfolded();
}, { capture: true });

/** A chart draws itself when it comes near or the browser is idle, before printing, and
 *  again whenever what it depends on changes. */
export function chart(spec: ChartSpec, context: Context): HTMLElement {
  return new Chart(spec, context).figure;
}

class Chart {
  readonly figure: HTMLElement;
  private readonly heading = h("h3");
  private readonly controls = h("div", { class: "controls" });
  private readonly legend = h("div", { class: "legend-box" });
  private readonly plot = h("div", { class: "plot", "aria-hidden": "true" });
  private readonly absent = h("div", { class: "absent" });
  private readonly caption = h("figcaption");
  private readonly data;
  private instance: ECharts | null = null;
  private drawing: Drawing | null = null;
  private theme: Theme | null = null;
  private seen = false;
  /** Whether something has changed since it was drawn. */
  private stale = false;
  private width = 0;

  constructor(private readonly spec: ChartSpec, private readonly context: Context) {
    const table = () => this.drawing?.table ?? null;
    this.data = data(spec.title, table);
    this.heading.textContent = this.title();
    this.figure = h(
      "figure",
      { class: "chart", "data-chart": spec.id },
      h("div", { class: "chart-head" }, this.heading, downloads(context, spec.id, spec.title, () => this.picture(), table)),
      this.controls,
      this.legend,
      this.plot,
      this.caption,
      this.absent,
      this.data.element,
    );
    follow(context, this.figure, [...SHARED, ...(spec.keys ?? [])], () => this.redraw());
    this.watch();
  }

  private title(): string {
    return this.spec.heading?.() ?? this.spec.title;
  }

  private watch(): void {
    const near = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        near.disconnect();
        this.look();
      },
      { rootMargin: `${NEAR}px 0px` },
    );
    near.observe(this.figure);
    const { page, result } = this.context;
    if (!page.live && result.cells.length <= AHEAD_CELLS_MAX) drawAhead(this);
    new ResizeObserver(() => {
      if (this.seen && !printing && Math.abs(this.plot.clientWidth - this.width) >= 1) this.redraw();
    }).observe(this.figure);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const again = () => this.redraw();
    dark.addEventListener("change", again);
    onPage.add(this);
    if (printing) queueMicrotask(() => this.print());
    // What has been taken off the page listens no longer.
    let placed = false;
    const gone = new MutationObserver(() => {
      placed ||= this.figure.isConnected;
      if (!placed || this.figure.isConnected) return;
      gone.disconnect();
      near.disconnect();
      dark.removeEventListener("change", again);
      onPage.delete(this);
      this.instance?.dispose();
      this.instance = null;
      this.seen = false;
    });
    gone.observe(document, { childList: true, subtree: true });
  }

  /** Draws for the first time. */
  look(): void {
    if (this.seen || !this.figure.isConnected) return;
    this.seen = true;
    this.redraw();
  }

  /** Draws what has changed while it was folded. */
  unfolded(): void {
    if (this.stale) this.redraw();
  }

  /** Draws for paper, or for the screen again. */
  print(): void {
    this.seen ||= printing && this.figure.isConnected;
    this.redraw();
  }

  private redraw(): void {
    if (!this.seen || !this.figure.isConnected) return;
    const isFolded = this.figure.closest("details:not([open])") !== null;
    this.stale = isFolded && !printing && this.theme !== null;
    if (this.stale) return;
    // What is folded may have no width yet.
    const width = () => this.plot.clientWidth || this.figure.clientWidth || (isFolded ? (this.figure.closest("main")?.clientWidth ?? 0) : 0);
    this.width = printing ? PAPER_WIDTH : width();
    if (this.width === 0) return;
    const theme = themeOf(this.context, printing);
    const drawing = this.spec.draw({ theme, width: this.width, hidden: hidden(this.context) });
    this.theme = theme;
    this.heading.textContent = this.title();
    refill(this.controls, ...(this.spec.controls?.() ?? []));
    this.controls.hidden = this.controls.childElementCount === 0;
    if (typeof drawing === "string") this.blank(drawing);
    else this.show(drawing, theme);
    this.data.renew();
    this.figure.dataset["drawn"] = "1";
  }

  private blank(why: string): void {
    this.drawing = null;
    this.instance?.dispose();
    this.instance = null;
    this.plot.style.height = "auto";
    fill(this.plot, h("p", { class: "nothing" }, why));
    this.plot.removeAttribute("aria-hidden");
    fill(this.legend);
    fill(this.absent);
    fill(this.caption);
    this.data.element.hidden = true;
  }

  private show(drawing: Drawing, theme: Theme): void {
    this.drawing = drawing;
    this.data.element.hidden = false;
    refill(this.legend, legend(this.context, drawing.systems, theme, drawing.named ?? false));
    fill(this.absent, ...(drawing.absent ?? []));
    const words = drawing.caption.filter((child) => typeof child === "string").join("");
    fill(this.caption, words !== "" && h("p", null, words), ...drawing.caption.filter((child) => typeof child !== "string"));
    if (this.instance === null) {
      fill(this.plot);
      this.plot.setAttribute("aria-hidden", "true");
    }
    this.plot.style.height = `${drawing.height}px`;
    const size = { width: this.width, height: drawing.height };
    if (this.instance === null) {
      this.instance = init(this.plot, null, { renderer: "svg", ...size });
      this.instance.on("click", (event) => {
        const cell = (event.data as { cell?: unknown } | undefined)?.cell;
        if (typeof cell === "number") this.context.evidence(cell);
      });
    } else this.instance.resize(size);
    this.instance.setOption({ ...base(theme), ...drawing.option }, { notMerge: true });
    // On paper the drawing takes the width that there is.
    const drawn = this.plot.querySelector("svg");
    if (printing) drawn?.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
    else drawn?.removeAttribute("viewBox");
  }

  private picture() {
    const drawing = this.plot.querySelector("svg");
    if (drawing === null || this.drawing === null || this.theme === null) return null;
    const { height, systems } = this.drawing;
    const away = hidden(this.context);
    return { title: this.title(), drawing, width: this.width, height, systems: systems.filter((system) => !away.has(system)), theme: this.theme };
  }
}

/** What every chart has. */
function base(theme: Theme): Option {
  return {
    animation: false,
    textStyle: { fontFamily: theme.font, color: theme.ink },
    tooltip: tooltip(theme),
  };
}

/** A tooltip of elements; `of` finds what is to be said of what is pointed at. */
export function tooltip(theme: Theme, trigger: "item" | "axis" = "item", of: (params: unknown) => Tip | null = tipOf): Option {
  return {
    trigger,
    confine: true,
    transitionDuration: 0,
    backgroundColor: theme.panel,
    borderColor: theme.line,
    borderWidth: 1,
    padding: [6, 8],
    textStyle: { color: theme.ink, fontSize: 12, fontFamily: theme.font },
    extraCssText: "box-shadow:0 2px 8px #0003;border-radius:4px;",
    axisPointer: { type: "line", animation: false, lineStyle: { color: theme.muted, width: 1 }, label: { show: false } },
    formatter: (params: unknown) => {
      const tip = of(params);
      return tip === null ? "" : tipElement(tip);
    },
  };
}

function tipOf(params: unknown): Tip | null {
  return (params as { data?: { tip?: Tip } | null }).data?.tip ?? null;
}
