import type { Section } from "../context";
import { bindings } from "./bindings";
import { capacity } from "./capacity";
import { cells } from "./cells";
import { claims } from "./claims";
import { comparison } from "./comparison";
import { cost } from "./cost";
import { downloads } from "./downloads";
import { guarantees } from "./guarantees";
import { latency } from "./latency";
import { map } from "./map";
import { opening } from "./opening";
import { price } from "./price";
import { published } from "./published";
import { runs } from "./runs";
import { settings } from "./settings";
import { throughput } from "./throughput";

/** The page from top to bottom: the answer, figures and charts, tables, runs, settings.
 *  A card, the price of durability, a comparison or a search for a capacity, where there is
 *  one, is what the page was made for: it follows the answer. */
export const SECTIONS: Section[] = [opening, guarantees, price, comparison, capacity, latency, throughput, map, cost, bindings, published, cells, claims, runs, settings, downloads];
