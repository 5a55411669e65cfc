import { look, referenceLook, type Look } from "./colour";
import { quantity } from "./format";
import type { Cell, Figure, Page, Result, Unit } from "./model";
import type { State } from "./state";

/** What every section is given. */
export interface Context {
  page: Page;
  /** The result that is shown, and its index. */
  result: Result;
  index: number;
  state: State;
  /** Whether the page is dark just now. */
  dark(): boolean;
  /** How a system looks, the same in every chart. */
  look(system: string): Look;
  figure(key: string): Figure;
  /** Opens the evidence of a cell. */
  evidence(cell: number): void;
}

/** A part of the page. It draws itself into its element and answers changes of
 *  the state by itself, through `context.state.subscribe`. */
export interface Section {
  id: string;
  title: string;
  /** `whole`: without a fold. `open`: in a fold that is open at first. Folded if absent. */
  shown?: "whole" | "open";
  /** Whether the result has anything for it. */
  has(context: Context): boolean;
  render(context: Context): HTMLElement;
}

export function looks(page: Page): (system: string, dark: boolean) => Look {
  const names = [...new Set(page.results.flatMap((result) => result.systems.filter((s) => s.kind !== "reference").map((s) => s.name)))];
  return (system, dark) => {
    const index = names.indexOf(system);
    return index < 0 ? referenceLook(dark) : look(index, dark);
  };
}

/** Whether a figure of a cell may be quoted. */
export function quotable(cell: Cell, key: string): boolean {
  return (cell.status === "valid" || cell.status === "partly") && cell.figures[key] !== undefined && !cell.unquoted?.includes(key);
}

/** Whether a cell has a figure that may not be quoted. */
export function spoiled(cell: Cell, key: string): boolean {
  return cell.figures[key] !== undefined && !quotable(cell, key);
}

/** A value of a figure, as it is to be read: `≥ 1.20M/s`, and a count to the
 *  last one: 4,303 lost messages are not 4.30k. */
export function said(cell: Cell, key: string, value: number, unit: Unit): string {
  const sign = cell.signs?.[key];
  const text = unit === "count" && Number.isInteger(value) ? value.toLocaleString("en") : quantity(value, unit);
  return `${sign ? `${sign} ` : ""}${text}`;
}

/** A figure of a cell that may be quoted or, marked by the caller, shown. */
export function value(cell: Cell, key: string): number | null {
  return cell.figures[key]?.[0] ?? null;
}
