/** Okabe and Ito's palette (https://jfly.uni-koeln.de/color/), which people with
 *  the common kinds of colour blindness can tell apart, adapted for contrast on
 *  either ground. Beyond eight systems the mark and the dash differ as well, and
 *  within eight they do too: no chart needs colour alone. */
const LIGHT = ["#0072b2", "#d55e00", "#007a5a", "#b3528f", "#a37200", "#2b8cc4", "#6b4fa0", "#5a5a00"];
const DARK = ["#56b4e9", "#ff8a3d", "#2bc79a", "#e49bc8", "#e69f00", "#9ad0f5", "#b79cf0", "#f0e442"];
const SYMBOLS = ["circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect", "emptyTriangle", "emptyDiamond"];
const DASHES: (number[] | "solid")[] = ["solid", [6, 3], [2, 2], [8, 3, 2, 3]];

export interface Look {
  colour: string;
  symbol: string;
  dash: number[] | "solid";
}

/** How the n-th system looks, the same in every chart. */
export function look(index: number, dark: boolean): Look {
  const palette = dark ? DARK : LIGHT;
  return {
    colour: palette[index % palette.length]!,
    symbol: SYMBOLS[index % SYMBOLS.length]!,
    dash: DASHES[Math.floor(index / palette.length) % DASHES.length]!,
  };
}

/** The floor and the mock are for comparison only: grey. */
export const referenceLook = (dark: boolean): Look => ({ colour: dark ? "#9a9a9a" : "#6e6e6e", symbol: "none", dash: [4, 4] });
