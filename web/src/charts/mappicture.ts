import type { MapView } from "../sections/map";
import { label } from "./clean";
import { outline, svg } from "./mark";
import type { Theme } from "./theme";
import { marginShort, type Square } from "./winners";

const WIDTH = 104;
const HEIGHT = 46;
const LEFT = 90;
const ABOVE = 44;
const GAP = 2;

/** The map as a drawing, for those who take it elsewhere. */
export function mapPicture(view: MapView, theme: Theme): { drawing: SVGElement; width: number; height: number } {
  const width = LEFT + view.columns.length * WIDTH;
  const height = ABOVE + view.rows.length * HEIGHT + 8;
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  const text = (x: number, y: number, words: string, more: Record<string, string | number> = {}) =>
    drawing.append(svg("text", { x, y, fill: theme.ink, "font-size": 12, ...more }, words));
  if (view.x) text(LEFT, 14, `${label(view.x.label)} →`, { fill: theme.muted });
  if (view.y) text(0, ABOVE - 8, `${label(view.y.label, 12)} ↑`, { fill: theme.muted });
  view.columns.forEach((column, j) => text(LEFT + (j + 0.5) * WIDTH, ABOVE - 8, label(column, 14), { "text-anchor": "middle", fill: theme.muted }));
  view.rows.forEach((row, i) => {
    text(LEFT - 8, ABOVE + (i + 0.5) * HEIGHT + 4, label(row, 12), { "text-anchor": "end", fill: theme.muted });
    view.columns.forEach((_, j) => drawing.append(...square(view.squares[i]![j]!, LEFT + j * WIDTH, ABOVE + i * HEIGHT, theme)));
  });
  return { drawing, width, height };
}

const WORDS: Partial<Record<Square["kind"], string>> = {
  undecided: "undecided", invalid: "invalid", failed: "failed", missing: "not run", skipped: "skipped", none: "no figure",
};

function square({ kind, systems, margin }: Square, x: number, y: number, theme: Theme): SVGElement[] {
  const box = { x, y, width: WIDTH - GAP, height: HEIGHT - GAP };
  const middle = { x: x + WIDTH / 2, "text-anchor": "middle", "font-size": 11 };
  const look = theme.look(systems[0] ?? "");
  if (kind === "winner") {
    return [
      svg("rect", { ...box, fill: look.colour, "fill-opacity": 0.25, stroke: look.colour }),
      svg("path", { d: outline(look), transform: `translate(${x + 5} ${y + 5})`, fill: look.colour }),
      svg("text", { ...middle, y: y + 20, fill: theme.ink, "font-weight": 600 }, label(systems[0] ?? "", 13)),
      svg("text", { ...middle, y: y + 35, fill: theme.muted }, margin === null ? "" : marginShort(margin)),
    ];
  }
  if (kind === "tie") {
    const each = (WIDTH - GAP) / systems.length;
    return [
      ...systems.map((system, i) => svg("rect", { ...box, x: x + i * each, width: each, fill: theme.look(system).colour, "fill-opacity": 0.25 })),
      svg("rect", { ...box, fill: "none", stroke: theme.muted, "stroke-dasharray": "4 2" }),
      svg("text", { ...middle, y: y + 20, fill: theme.ink }, systems.slice(0, 2).map((system) => label(system, 8)).join(" = ")),
      svg("text", { ...middle, y: y + 35, fill: theme.muted }, systems.length > 2 ? `= ${systems.length - 2} more` : "tie"),
    ];
  }
  return [
    svg("rect", { ...box, fill: "none", stroke: theme.line, "stroke-dasharray": kind === "empty" ? "none" : "2 2" }),
    svg("text", { ...middle, y: y + 27, fill: theme.muted }, WORDS[kind] ?? ""),
  ];
}
