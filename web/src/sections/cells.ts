import { quotable, said, spoiled, type Context, type Section } from "../context";
import { link, search, select, tick } from "../controls";
import { h, type Child } from "../dom";
import { quantity, withInterval } from "../format";
import type { Cell, Figure } from "../model";
import { matcher } from "../order";
import { Table, type Column } from "../table";
import { clean, many } from "../text";
import { refill } from "../charts/controls";
import { dot, rankBadge, statusWord, UNRELIABLE } from "../words";
import { chosenKey, kindToggle } from "./shared";

/** Figures that are shown unless the reader asks for all. */
const MAIN = ["latency_p50_ns", "latency_p99_ns", "latency_p999_ns", "delivered_per_s", "cpu_cores", "cpu_ns_per_message", "rss_bytes_max"];

/** What is shown before them where what became of each message matters first. */
const DELIVERY = ["acked", "acked_lost", "lost", "duplicated"];

/** The figures of delivery that come first for these cells: none where nothing asks for them. */
export function deliveryOf(cells: readonly Cell[]): string[] {
  const refuses = cells.some((cell) => (cell.figures["refused"]?.[0] ?? 0) > 0);
  if (!refuses && !cells.some((cell) => cell.delivery_first)) return [];
  return refuses ? ["acked", "refused", ...DELIVERY.slice(1)] : DELIVERY;
}

/** Every cell with its figures, by point. */
export const cells: Section = {
  id: "cells",
  title: "All cells",
  has: ({ result }) => result.cells.length > 0,
  render(context) {
    const { result, state } = context;
    const box = h("div");
    const draw = (): void => {
      const table = tableOf(context);
      const show = (keepPage: boolean): void => table.show(filtered(context), keepPage);
      show(true);
      box.replaceChildren(table.element);
      refilter = () => show(false);
    };
    let refilter = (): void => {};
    draw();
    state.subscribe((changed) => {
      if (changed.has("cells.all") || changed.has("from")) {
        kindsAgain();
        draw();
      }
      if (changed.has("cells.text") || changed.has("cells.status")) refilter();
    });
    const kinds = h("div");
    const kindsAgain = (): void => refill(kinds, kindToggle(context));
    kindsAgain();
    const statuses = [...new Set(result.cells.map((cell) => statusWord(cell.status)))];
    return h(
      "div",
      null,
      h("p", { class: "muted" }, "Each figure is the median over the runs in which it is reliable, with its 95 % interval below. Struck through: unreliable in all runs."),
      h(
        "div",
        { class: "filters" },
        search("Find", "cells.text", "system or value", state),
        select("Verdict", "cells.status", [{ value: "", label: "any" }, ...statuses.map((status) => ({ value: status, label: status }))], state),
        tick("all figures", "cells.all", state),
        kinds,
      ),
      box,
    );
  },
};

function filtered({ result, state }: Context): Cell[] {
  const fits = matcher(state.get("cells.text"));
  const status = state.get("cells.status");
  const inOrder = result.points.flatMap((point) => point.cells.map((index) => result.cells[index]!));
  return inOrder.filter((cell) => (status === "" || statusWord(cell.status) === status) && fits(clean(cell.label)));
}

/** Figures that at least one cell has, in the order of the summary. */
function columnsOf(context: Context): Figure[] {
  const { page, result, state } = context;
  const has = (figure: Figure): boolean => result.cells.some((cell) => cell.figures[figure.key] !== undefined);
  const wanted = state.is("cells.all") ? null : new Set(MAIN.map((key) => chosenKey(context, key)));
  const first = deliveryOf(result.cells);
  const others = page.figures.filter((figure) => !first.includes(figure.key) && (wanted === null || wanted.has(figure.key)) && figure.key !== "delivered_ratio");
  return [...page.figures.filter((figure) => first.includes(figure.key)).sort((a, b) => first.indexOf(a.key) - first.indexOf(b.key)), ...others].filter(has);
}

function tableOf(context: Context): Table<Cell> {
  const { result, state } = context;
  const index = new Map(result.cells.map((cell, at) => [cell, at]));
  const place = (cell: Cell): string => clean(result.points[cell.point]?.label ?? "", 200);
  const open = (cell: Cell): void => context.evidence(index.get(cell)!);
  const columns: Column<Cell>[] = [
    {
      key: "system",
      label: "system",
      sort: (cell) => cell.system,
      cell: (cell) => [
        link([dot(context.page, cell.system), clean(cell.system, 40)], () => open(cell), { "data-cell": String(index.get(cell)), "aria-label": `Evidence: ${clean(cell.label)}` }),
        state.get("cells.sort") === "" ? null : h("div", { class: "small" }, place(cell)),
      ],
    },
    { key: "verdict", label: "verdict", about: "where it stands by the figure that ranks its point", sort: (cell) => cell.word, cell: (cell) => [rankBadge(context.page, cell), h("div", { class: cell.status === "valid" ? "small" : "small narrow" }, why(cell))] },
    ...columnsOf(context).map((figure): Column<Cell> => ({
      key: figure.key,
      label: figure.key === "delivered_per_s" ? `${figure.label}, of expected` : figure.label,
      about: figure.about,
      numeric: true,
      sort: (cell) => cell.figures[figure.key]?.[0] ?? null,
      cell: (cell) => shown(context, cell, figure),
    })),
  ];
  return new Table({ id: "cells", caption: "All cells with their figures", columns, state, open, group: place, class: (cell) => cell.status });
}

/** Why a cell is not ok, in short. */
function why(cell: Cell): string {
  if (cell.status === "skipped") return clean(cell.skipped ?? "skipped", 80);
  if (cell.status === "failed") return clean(cell.error ?? "", 80);
  if (cell.reasons.length > 0) return cell.reasons.map(({ reason, runs, touches }) => `${clean(reason, 40)} ${runs}×${touches === "" ? "" : ` (${clean(touches, 60)})`}`).join(", ");
  return cell.notes.length === 0 ? many(cell.valid_runs, "run") : `${many(cell.valid_runs, "run")}, ${many(cell.notes.length, "note")}`;
}

function shown(context: Context, cell: Cell, figure: Figure): Child {
  const estimate = cell.figures[figure.key];
  if (estimate === undefined) return h("span", { class: "muted" }, "–");
  const [value, lo, hi] = estimate;
  const ratio = figure.key === "delivered_per_s" ? cell.figures["delivered_ratio"]?.[0] : undefined;
  return h(
    "div",
    { title: `${figure.label}: ${withInterval(estimate, figure.unit)}${spoiled(cell, figure.key) ? `, ${UNRELIABLE}` : ""}` },
    rank(context, cell, figure),
    spoiled(cell, figure.key) ? h("s", null, said(cell, figure.key, value, figure.unit)) : said(cell, figure.key, value, figure.unit),
    ratio === undefined ? null : h("span", { class: ratio < 1 ? "ratio less" : "ratio" }, ` ${quantity(ratio, "share")}`),
    lo === null || hi === null ? null : h("div", { class: "small" }, `${quantity(lo, figure.unit)} to ${quantity(hi, figure.unit)}`),
  );
}

/** The word for who is best of a point. */
function rank({ result }: Context, cell: Cell, figure: Figure): Child {
  const found = result.points[cell.point]?.ranks[figure.key];
  if (found === undefined || !quotable(cell, figure.key) || !found.systems.includes(cell.system)) return null;
  if (found.kind === "winner") return h("span", { class: "rank best" }, "best ");
  if (found.kind === "tie") return h("span", { class: "rank", title: `tie of ${many(found.systems.length, "system")}` }, "tie ");
  return null;
}
