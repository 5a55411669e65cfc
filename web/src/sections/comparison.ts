import { forest } from "../charts/forest";
import type { Context, Section } from "../context";
import { search, select, tick } from "../controls";
import { h, type Child } from "../dom";
import { NONE, quantity, withInterval } from "../format";
import type { CellChange, Change, Comparison } from "../model";
import { matcher } from "../order";
import { Table, plainTable, type Column } from "../table";
import { clean, many } from "../text";
import { changeBadge } from "../words";

/** A change with its cell. */
interface Row {
  cell: CellChange;
  change: Change;
}

const OUTCOMES: Change["outcome"][] = ["worse", "better", "changed", "undecided", "no difference"];

/** How far a change is from none, either way; null where it has no ratio. */
export function size(change: Change): number | null {
  const ratio = change.ratio?.[0];
  if (ratio === undefined || ratio === null || !Number.isFinite(ratio)) return null;
  return ratio <= 0 ? Number.MAX_VALUE : Math.abs(Math.log(ratio));
}

/** Two results side by side: first what else was different, then the changes. */
export const comparison: Section = {
  id: "comparison",
  title: "Comparison",
  shown: "open",
  has: ({ page }) => page.comparison !== null,
  render(context) {
    const found = context.page.comparison!;
    return h("div", { class: "comparison" }, environment(context, found), changes(context, found), lonely(context, found));
  },
};

const names = ({ page }: Context): [string, string] => [clean(page.results[0]?.name ?? "first", 60), clean(page.results[1]?.name ?? "second", 60)];

function environment(context: Context, { environment }: Comparison): Child {
  const [a, b] = names(context);
  if (environment.length === 0) return h("p", null, "Both were measured with the same versions on the same machine, as far as was recorded.");
  const rows = environment.map((one) => [clean(one.what, 120), clean(one.a, 300), clean(one.b, 300)]);
  return [
    h("h3", null, "What else was different"),
    h("p", { class: "muted" }, "A change below may come of any of these."),
    plainTable("Differences of the environment", ["what", `${a} (baseline)`, b], rows),
  ];
}

function lonely(context: Context, { only_a, only_b }: Comparison): Child {
  const [a, b] = names(context);
  const one = (name: string, labels: string[]): Child =>
    labels.length === 0 ? null : h("details", null, h("summary", null, `${many(labels.length, "cell")} only in ${name}`), h("ul", null, labels.slice(0, 500).map((label) => h("li", null, clean(label, 200)))));
  return [one(a, only_a), one(b, only_b)];
}

function rowsOf(comparison: Comparison): Row[] {
  return comparison.same.flatMap((cell) => cell.changes.map((change) => ({ cell, change })));
}

function changes(context: Context, comparison: Comparison): Child {
  const { page, state } = context;
  const all = rowsOf(comparison);
  const there = new Set(all.map((row) => row.change.column));
  const figures = page.figures.filter((figure) => there.has(figure.key));
  const chosen = (): string => {
    const key = state.get("compare.figure");
    if (key === "all" || there.has(key)) return key;
    return there.has("latency_p50_ns") ? "latency_p50_ns" : (figures[0]?.key ?? "all");
  };
  const counts = h("p", { class: "counts", role: "status" });
  const plot = h("div");
  const table = tableOf(context);
  const draw = (): void => {
    const figure = chosen();
    const fits = matcher(state.get("compare.text"));
    // The chart is of one figure.
    plot.hidden = figure === "all";
    const rows = all.filter(({ cell, change }) => (figure === "all" || change.column === figure) && fits(clean(cell.label)));
    counts.replaceChildren(...OUTCOMES.map((outcome) => ({ outcome, count: rows.filter((row) => row.change.outcome === outcome).length })).filter(({ count }) => count > 0).map(({ outcome, count }) => h("span", null, `${count.toLocaleString("en")} `, changeBadge(outcome))));
    const different = state.is("compare.different") ? rows.filter(({ change }) => change.outcome !== "no difference") : rows;
    table.show(different.toSorted((a, b) => (size(b.change) ?? -1) - (size(a.change) ?? -1)), true);
  };
  draw();
  state.subscribe((changed) => {
    if ([...changed].some((key) => key.startsWith("compare.") && key !== "compare.sort" && key !== "compare.page")) draw();
  });
  plot.append(forest(comparison, context));
  const options = [...figures.map((figure) => ({ value: figure.key, label: figure.label })), { value: "all", label: "all figures" }];
  const pick = select("Figure", "compare.figure", options, state);
  const list = pick.querySelector("select");
  if (list) list.value = chosen();
  return [
    h("h3", null, "Changes"),
    h("div", { class: "filters" }, pick, search("Find", "compare.text", "system or value", state), tick("only differences", "compare.different", state)),
    counts,
    plot,
    table.element,
  ];
}

function tableOf(context: Context): Table<Row> {
  const [a, b] = names(context);
  const side = (estimate: Change["a"], key: string): Child => (estimate === null ? NONE : withInterval(estimate, context.figure(key).unit));
  const columns: Column<Row>[] = [
    { key: "cell", label: "cell", sort: (row) => row.cell.label, cell: (row) => clean(row.cell.label, 160) },
    { key: "figure", label: "figure", sort: (row) => context.figure(row.change.column).label, cell: (row) => context.figure(row.change.column).label },
    { key: "outcome", label: "outcome", sort: (row) => OUTCOMES.indexOf(row.change.outcome), cell: (row) => [changeBadge(row.change.outcome), row.change.why === null ? null : h("div", { class: "small" }, clean(row.change.why, 160))] },
    { key: "ratio", label: "second / first", about: "the second result's value over the first's, with its 95 % interval", numeric: true, sort: (row) => row.change.ratio?.[0] ?? null, cell: (row) => ratio(row.change) },
    { key: "a", label: `${a} (baseline)`, numeric: true, sort: (row) => row.change.a?.[0] ?? null, cell: (row) => side(row.change.a, row.change.column) },
    { key: "b", label: b, numeric: true, sort: (row) => row.change.b?.[0] ?? null, cell: (row) => side(row.change.b, row.change.column) },
  ];
  return new Table({ id: "compare", caption: "Changes by size", columns, state: context.state });
}

function ratio(change: Change): Child {
  if (change.ratio === null) return NONE;
  const [value, lo, hi] = change.ratio;
  return [h("strong", null, quantity(value, "multiple")), lo === null || hi === null ? null : h("div", { class: "small" }, `${quantity(lo, "multiple")} to ${quantity(hi, "multiple")}`)];
}
