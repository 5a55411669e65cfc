import { quotable } from "../context";
import type { Axis, Cell, Figure, Point, Result } from "../model";
import { NOT_COMPARABLE, UNRELIABLE } from "../words";
import { present } from "./slicing";

/** What stands in a square of the map. */
export interface Square {
  kind: "winner" | "tie" | "alone" | "open" | "unranked" | "invalid" | "failed" | "missing" | "skipped" | "none" | "empty";
  /** By index; null where the study has no such point. */
  point: number | null;
  /** The winner, those in the tie, or the candidates. */
  systems: string[];
  /** By how much the winner leads the second, as a share; null where not both
   *  may be quoted. */
  margin: number | null;
  /** Why nothing may be said. */
  why: string | null;
  /** About how many more repeats would tell. */
  more?: number | null;
}

/** What searches have found: no figure of a run, but one by which systems are ranked. */
export const CAPACITY: Figure = {
  key: "capacity", label: "capacity", unit: "count", better: "higher", group: "rates", about: "The highest load at which the objective holds.",
};

/** Systems that are compared with and never compete. */
function competes(result: Result, cell: Cell): boolean {
  return result.systems.find(({ name }) => name === cell.system)?.kind !== "reference";
}

/** Who is best at a point by a figure. */
export function square(result: Result, index: number, figure: Figure): Square {
  const point = result.points[index]!;
  const base = { point: index, systems: [], margin: null, why: null };
  const rank = figure === CAPACITY ? point.capacity : point.ranks[figure.key];
  const cells = point.cells.map((cell) => result.cells[cell]!).filter((cell) => competes(result, cell));
  const has = figure === CAPACITY || cells.some((cell) => quotable(cell, figure.key));
  // Where nobody has a figure that may be compared, the reason is shown instead.
  if (rank && (has || rank.systems.length > 0 || rank.kind === "unranked")) {
    return { ...base, kind: rank.kind, systems: rank.systems, why: rank.why, more: rank.repeats_more ?? null, margin: rank.kind === "winner" ? margin(result, point, rank.systems[0], figure) : null };
  }
  const kinds = ["invalid", "failed", "missing", "skipped"] as const;
  if (cells.some((cell) => cell.status === "partly" && cell.figures[figure.key])) return { ...base, kind: "invalid" };
  if (cells.some(({ status }) => status === "valid" || status === "partly")) return { ...base, kind: "none", why: "no such figure here" };
  const kind = kinds.find((kind) => cells.some(({ status }) => status === kind));
  return { ...base, kind: kind ?? "none", why: cells.find((cell) => cell.status === kind)?.skipped ?? null };
}

/** The best system at a point by published figures; null where fewer than two systems have one. */
export function publishedBest(result: Result, index: number, figure: Figure): string | null {
  const cells = new Set(result.points[index]!.cells);
  const rows = (result.reference?.values ?? []).filter((row) => row.figure === figure.key && cells.has(row.cell) && competes(result, result.cells[row.cell]!));
  if (rows.length < 2) return null;
  const isBetter = (one: number, other: number) => (figure.better === "higher" ? one > other : one < other);
  const best = rows.reduce((best, row) => (isBetter(row.value, best.value) ? row : best));
  return result.cells[best.cell]!.system;
}

function margin(result: Result, point: Point, winner: string | undefined, figure: Figure): number | null {
  const values = point.cells.map((index) => result.cells[index]!)
    .filter((cell) => competes(result, cell) && quotable(cell, figure.key))
    .map((cell) => ({ system: cell.system, value: cell.figures[figure.key]![0] }));
  const best = values.find(({ system }) => system === winner)?.value;
  const others = values.filter(({ system }) => system !== winner).map(({ value }) => value);
  if (best === undefined || others.length === 0) return null;
  const second = others.reduce((a, b) => (figure.better === "higher" ? Math.max(a, b) : Math.min(a, b)));
  if (best <= 0 || second <= 0) return null;
  return figure.better === "higher" ? best / second - 1 : second / best - 1;
}

/** The two axes of the map: those chosen, else payload and subscribers, else the
 *  two with the most values. One only where one varies; none where none does. */
export function mapAxes(cells: Cell[], axes: Axis[], x: string, y: string): { x: Axis | null; y: Axis | null; all: Axis[] } {
  const count = (axis: Axis) => present(axis, cells).length;
  const all = axes.filter((axis) => axis.name !== "system" && axis.name !== "part" && count(axis) > 1);
  const named = (name: string) => all.find((axis) => axis.name === name);
  const most = [...all].sort((a, b) => count(b) - count(a));
  const usual = named("payload") && named("subscribers") ? ["payload", "subscribers"] : most.map(({ name }) => name);
  const across = named(x) ?? named(usual.find((name) => name !== y) ?? "") ?? null;
  const up = named(y === across?.name ? "" : y) ?? named(usual.find((name) => name !== across?.name) ?? "") ?? null;
  return { x: across, y: up === across ? null : up, all };
}

/** The square in words, for those who hear it. */
export function squareWords({ kind, systems, margin, why, more }: Square): string {
  const list = systems.join(", ");
  switch (kind) {
    case "winner": return `${list} is best${margin === null ? "" : `, ${marginWords(margin)} ahead of the second`}`;
    case "tie": return `tie of ${list}`;
    case "open": return `open: ${systems.join(" or ")}${why ? `, ${why}` : ""}${moreWords(more)}`;
    case "alone": return "alone: no other system has this figure";
    case "unranked": return `${NOT_COMPARABLE}${why ? `: ${why}` : ""}`;
    case "skipped": return `skipped${why ? `: ${why}` : ""}`;
    case "invalid": return UNRELIABLE;
    case "failed": return "failed";
    case "missing": return "not run yet";
    case "none": return "no such figure here";
    case "empty": return "not part of the study";
  }
}

/** `; about 4 more repeats needed`, where that can be said. */
export function moreWords(more: number | null | undefined): string {
  return more ? `; about ${more} more ${more === 1 ? "repeat" : "repeats"} needed` : "";
}

/** `12 %`; of what is more than twice as good `3.4×`. */
export function marginWords(margin: number): string {
  if (margin >= 0.995) return `${(margin + 1).toPrecision(2)}×`;
  return margin < 0.01 ? "<1 %" : `${Math.round(margin * 100)} %`;
}

/** The same where there is little room: `+12 %`. */
export function marginShort(margin: number): string {
  const words = marginWords(margin);
  return words.endsWith("×") ? words : `+${words}`;
}
