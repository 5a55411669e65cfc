import { label } from "../charts/clean";
import { follow, refill, select } from "../charts/controls";
import { SHARED } from "../charts/chart";
import { slices, type Slice } from "../charts/slicing";
import { quotable, type Context } from "../context";
import { h } from "../dom";
import type { Cell } from "../model";

/** Where a section is cut: what its charts show beside the systems. */
export interface Cut {
  slices: Slice[];
  cells: Cell[];
}

/** Cells that a section can show, cut as the reader chose; `use` says how much
 *  a cell has to show there, 0 for nothing. */
export function cut(context: Context, cells: Cell[], used: string[], use: (cell: Cell) => number): Cut {
  return slices(cells, context.result.axes, new Set(used), (axis) => context.state.get(`slice.${axis}`), use);
}

/** What a cut is at, in words: `payload 1 KiB, rate 1000`. */
export function cutWords(found: Slice[]): string {
  return found.map(({ axis, chosen }) => `${label(axis.label)} ${label(chosen)}`).join(", ");
}

/** A bar of selects for the axes at which a section is cut. */
export function sliceBar(context: Context, cutNow: () => Cut): HTMLElement {
  const bar = h("div", { class: "slice-bar", role: "group", "aria-label": "Shown at" });
  const redraw = () => {
    const { slices } = cutNow();
    refill(
      bar,
      slices.length > 0 && h("span", { class: "at" }, "Shown at"),
      slices.map(({ axis, options, chosen }) =>
        select(context, `slice.${axis.name}`, axis.label, options.map((option) => [option, option]), chosen),
      ),
    );
  };
  redraw();
  follow(context, bar, SHARED, redraw);
  return bar;
}

/** How useful a cell is where these figures are drawn: most where it is valid. */
export function usefulness(...keys: string[]): (cell: Cell) => number {
  return (cell) => {
    if (!keys.some((key) => cell.figures[key])) return 0;
    return keys.some((key) => quotable(cell, key)) ? 1 : 0.1;
  };
}
