import { label } from "./clean";
import { outline, svg } from "./mark";
import type { Theme } from "./theme";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 16;
const TITLE_HEIGHT = 28;
const LEGEND_HEIGHT = 20;
const PNG_SCALE = 2;

/** A chart as a drawing that stands by itself: with title and legend. */
export function compose(chart: SVGElement, width: number, height: number, title: string, systems: string[], theme: Theme): SVGElement {
  const rows = legendRows(systems, width);
  const top = MARGIN + TITLE_HEIGHT + rows.length * LEGEND_HEIGHT;
  const full = { width: width + 2 * MARGIN, height: top + height + MARGIN };
  const drawing = svg("svg", { xmlns: SVG, ...full, viewBox: `0 0 ${full.width} ${full.height}`, "font-family": theme.font });
  drawing.append(svg("rect", { ...full, fill: theme.ground }));
  drawing.append(svg("text", { x: MARGIN, y: MARGIN + 14, fill: theme.ink, "font-size": 15, "font-weight": 600 }, title));
  rows.forEach((row, line) => {
    for (const { system, x } of row) {
      const y = MARGIN + TITLE_HEIGHT + line * LEGEND_HEIGHT;
      const look = theme.look(system);
      drawing.append(svg("path", { d: outline(look), transform: `translate(${x} ${y})`, fill: look.colour }));
      drawing.append(svg("text", { x: x + 15, y: y + 9, fill: theme.ink, "font-size": 12 }, label(system)));
    }
  });
  const inner = chart.cloneNode(true) as SVGElement;
  for (const [key, value] of Object.entries({ x: MARGIN, y: top, width, height })) inner.setAttribute(key, String(value));
  drawing.append(inner);
  return drawing;
}

function legendRows(systems: string[], width: number): { system: string; x: number }[][] {
  const rows: { system: string; x: number }[][] = [];
  let x = Infinity;
  for (const system of systems) {
    const wide = 30 + 7.5 * label(system).length;
    if (x + wide > width) {
      rows.push([]);
      x = MARGIN;
    }
    rows.at(-1)!.push({ system, x });
    x += wide;
  }
  return rows;
}

/** A drawing as the text of a file. */
export function svgText(drawing: SVGElement): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(drawing)}`;
}

/** A drawing as pixels, twice as many as it has points. */
export async function png(drawing: SVGElement): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svgText(drawing)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Number(drawing.getAttribute("width")) * PNG_SCALE;
    canvas.height = Number(drawing.getAttribute("height")) * PNG_SCALE;
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no picture came of it"))), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Gives the reader a file. */
export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A file's name out of a title: letters, digits and hyphens. */
export function fileName(...parts: string[]): string {
  const name = parts.join("-").toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 80).replace(/^-+|-+$/g, "");
  return name === "" ? "chart" : name;
}
