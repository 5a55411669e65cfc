/** Values of a record under their names, for people: the unit is in the name. */
import { quantity } from "./format";
import type { Unit } from "./model";
import { clean } from "./text";

const ENDINGS: [RegExp, Unit, number][] = [
  [/_ns$/, "ns", 1],
  [/(^|_)bytes(_|$)/, "bytes", 1],
  [/_per_s$/, "per_s", 1],
  [/_s$/, "ns", 1e9],
  [/_cores$/, "cores", 1],
];

/** Characters of a value that are shown. */
const VALUE_CHARS = 400;

/** A value as its name says that it is to be read. */
export function fact(name: string, value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (typeof value === "number") {
    if (name.endsWith("bytes_per_s")) return quantity(value, "bytes_per_s");
    const ending = ENDINGS.find(([pattern]) => pattern.test(name));
    if (ending && Number.isFinite(value)) return quantity(value * ending[2], ending[1]);
    return Number.isInteger(value) ? value.toLocaleString("en") : String(Number(value.toPrecision(4)));
  }
  if (typeof value === "string") return value === "" ? "(empty)" : clean(value, VALUE_CHARS);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.length === 0 ? "none" : clean(value.map((one) => (typeof one === "object" ? JSON.stringify(one) : String(one))).join(" "), VALUE_CHARS);
  return clean(JSON.stringify(value), VALUE_CHARS);
}

/** How deep and how much of a record is laid out. */
const DEPTH_MAX = 4;
const FACTS_MAX = 200;

/** An object laid flat: `extent.time_ns`. */
export function flat(value: Record<string, unknown> | null | undefined, prefix = "", depth = 0): [name: string, value: unknown][] {
  const all: [string, unknown][] = [];
  for (const [key, inner] of Object.entries(value ?? {})) {
    if (all.length >= FACTS_MAX) break;
    const name = prefix === "" ? key : `${prefix}.${key}`;
    const nested = typeof inner === "object" && inner !== null && !Array.isArray(inner) && depth < DEPTH_MAX;
    if (nested) all.push(...flat(inner as Record<string, unknown>, name, depth + 1));
    else all.push([name, inner]);
  }
  return all.slice(0, FACTS_MAX);
}
