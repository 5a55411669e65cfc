import type { MapPanel, MapView } from "../sections/map";
import { NOT_COMPARABLE, UNRELIABLE } from "../words";
import { label } from "./clean";
import { outline, svg } from "./mark";
import type { Theme } from "./theme";
import { marginShort, type Square } from "./winners";

const WIDTH = 104;
const HEIGHT = 46;
const LEFT = 90;
const ABOVE = 44;
const BELOW = 14;
const GAP = 2;

/** The maps as a drawing, one below the other, for those who take it elsewhere. */
export function mapPicture(view: MapView, theme: Theme): { drawing: SVGElement; width: number; height: number } {
  const width = LEFT + Math.max(...view.panels.map(({ columns }) => columns.length)) * WIDTH;
  const tall = ({ rows }: MapPanel) => ABOVE + rows.length * HEIGHT + BELOW;
  const height = view.panels.reduce((sum, panel) => sum + tall(panel), 0);
  const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  let top = 0;
  for (const panel of view.panels) {
    drawing.append(...drawPanel(view, panel, top, theme));
    top += tall(panel);
  }
  return { drawing, width, height };
}

function drawPanel({ x, y, by }: MapView, { name, columns, rows, squares }: MapPanel, top: number, theme: Theme): SVGElement[] {
  const text = (x: number, y: number, words: string, more: Record<string, string | number> = {}) =>
    svg("text", { x, y: top + y, fill: theme.muted, "font-size": 12, ...more }, words);
  return [
    ...(by ? [text(0, 14, `${label(by.label, 14)} ${label(name, 14)}`, { fill: theme.ink, "font-weight": 600 })] : []),
    ...(x ? [text(LEFT + (by ? 80 : 0), 14, `${label(x.label)} →`)] : []),
    ...(y ? [text(0, ABOVE - 8, `${label(y.label, 12)} ↑`)] : []),
    ...columns.map((column, j) => text(LEFT + (j + 0.5) * WIDTH, ABOVE - 8, label(column, 14), { "text-anchor": "middle" })),
    ...rows.flatMap((row, i) => [
      text(LEFT - 8, ABOVE + (i + 0.5) * HEIGHT + 4, label(row, 12), { "text-anchor": "end" }),
      ...columns.flatMap((_, j) => square(squares[i]![j]!, LEFT + j * WIDTH, top + ABOVE + i * HEIGHT, theme)),
    ]),
  ];
}

const WORDS: Partial<Record<Square["kind"], string>> = {
  alone: "alone", open: "open", unranked: NOT_COMPARABLE, invalid: UNRELIABLE, failed: "failed", missing: "not run", skipped: "skipped", none: "no figure",
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
  if (kind === "empty") return [];
  const named = kind === "open" && systems.length > 0;
  const words = named ? systems.slice(0, 2).map((system) => label(system, 8)).join(" or ") : (WORDS[kind] ?? "");
  const paint = kind === "open" || kind === "unranked" ? theme.warn : kind === "invalid" || kind === "failed" ? theme.bad : theme.muted;
  return [
    svg("rect", { ...box, fill: "none", stroke: paint, "stroke-dasharray": "3 2" }),
    svg("text", { ...middle, y: y + (named ? 20 : 27), fill: paint }, words),
    ...(named ? [svg("text", { ...middle, y: y + 35, fill: theme.muted }, systems.length > 2 ? `or ${systems.length - 2} more` : "open")] : []),
  ];
}
