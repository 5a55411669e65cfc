import type { Look } from "../colour";
import { looks, type Context } from "../context";

/** The page's colours, as a chart needs them. */
export interface Theme {
  ink: string;
  muted: string;
  line: string;
  ground: string;
  panel: string;
  accent: string;
  good: string;
  bad: string;
  warn: string;
  font: string;
  look(system: string): Look;
}

const PAPER = {
  ink: "#111111", muted: "#555555", line: "#d0d0d0", ground: "#ffffff", panel: "#f6f6f6",
  accent: "#0b5cad", good: "#1a7f37", bad: "#b42318", warn: "#8a5a00",
};

/** The colours just now; those of paper where the page is being printed. */
export function theme(context: Context, printing: boolean): Theme {
  const style = getComputedStyle(document.documentElement);
  const font = getComputedStyle(document.body).fontFamily || "system-ui, sans-serif";
  const dark = !printing && context.dark();
  const byPage = looks(context.page);
  const colours = { ...PAPER };
  if (!printing) {
    for (const key of Object.keys(PAPER) as (keyof typeof PAPER)[]) {
      colours[key] = style.getPropertyValue(`--${key}`).trim() || PAPER[key];
    }
  }
  return { ...colours, font, look: (system) => byPage(system, dark) };
}
