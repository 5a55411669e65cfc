import type { Section } from "../context";
import { bindings } from "./bindings";
import { cells } from "./cells";
import { claims } from "./claims";
import { comparison } from "./comparison";
import { cost } from "./cost";
import { downloads } from "./downloads";
import { latency } from "./latency";
import { map } from "./map";
import { opening } from "./opening";
import { published } from "./published";
import { runs } from "./runs";
import { throughput } from "./throughput";

/** The page from top to bottom. A comparison, where there is one, is what the
 *  page was made for: it follows the answer. */
export const SECTIONS: Section[] = [opening, comparison, bindings, latency, throughput, map, cost, published, cells, claims, runs, downloads];
