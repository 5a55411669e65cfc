import type { Look } from "../colour";

/** Outlines on a ground of 10 by 10, by the name of a look's symbol. All of them
 *  are filled where a point is valid: hollow is what is not. */
const OUTLINES: Record<string, string> = {
  circle: "M5 0A5 5 0 1 0 5 10A5 5 0 1 0 5 0Z",
  rect: "M.6 .6H9.4V9.4H.6Z",
  triangle: "M5 0L10 9.2H0Z",
  diamond: "M5 0L10 5L5 10L0 5Z",
  emptyCircle: "M5 0L9.6 2.6V7.4L5 10L.4 7.4V2.6Z",
  emptyRect: "M3.2 0H6.8V3.2H10V6.8H6.8V10H3.2V6.8H0V3.2H3.2Z",
  emptyTriangle: "M0 .8H10L5 10Z",
  emptyDiamond: "M5 0L6.5 3.5L10 3.9L7.4 6.4L8.1 10L5 8.2L1.9 10L2.6 6.4L0 3.9L3.5 3.5Z",
  none: "M5 2A3 3 0 1 0 5 8A3 3 0 1 0 5 2Z",
};

/** The outline of a system's symbol. */
export function outline(look: Look): string {
  return OUTLINES[look.symbol] ?? OUTLINES["circle"]!;
}

/** As ECharts wants it. */
export function symbol(look: Look): string {
  return `path://${outline(look)}`;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of an SVG drawing. */
export function svg(name: string, attributes: Record<string, string | number>, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** How a system looks, as a small drawing: its line and its symbol. */
export function swatch(look: Look): SVGElement {
  const dash = look.dash === "solid" ? "none" : look.dash.join(" ");
  return svg(
    "svg",
    { width: 22, height: 12, viewBox: "0 0 22 12", "aria-hidden": "true", class: "swatch" },
    svg("path", { d: "M0 6H22", stroke: look.colour, "stroke-width": 1.5, "stroke-dasharray": dash, fill: "none" }),
    svg("path", { d: outline(look), transform: "translate(6 1)", fill: look.colour }),
  );
}

/** A system's symbol alone. */
export function glyph(look: Look): SVGElement {
  return svg(
    "svg",
    { width: 11, height: 11, viewBox: "-.5 -.5 11 11", "aria-hidden": "true", class: "glyph" },
    svg("path", { d: outline(look), fill: look.colour }),
  );
}
