/** A system at one load. */
export interface Load {
  load: number;
  /** Whether its figures are reliable. */
  valid: boolean;
  /** Delivered over expected; null where it was not measured. */
  ratio: number | null;
  /** ns; null where it was not measured. */
  p99: number | null;
}

export interface Knee {
  /** The highest load that is sustained; null where not even the lowest is. */
  load: number | null;
  p99: number | null;
  /** The bound that was applied, ns. */
  bound: number | null;
  /** The first load that is not sustained, and why; null where all that were
   *  measured are, and the knee lies beyond. */
  stop: { load: number; why: "unreliable" | "lossy" | "late" | "not measured" } | null;
}

/** Least share delivered of a load that is sustained. */
export const SUSTAINED_RATIO = 0.999;
/** The bound on p99 where none is given, as a multiple of p99 at the lowest load. */
export const BOUND_MULTIPLE = 10;

/** The highest load that delivers `SUSTAINED_RATIO` and has its p99 within the
 *  bound (ns; null for `BOUND_MULTIPLE` times the p99 at the lowest load), with
 *  no lower one that is shown not to. A load of which nothing may be said ends
 *  nothing where a higher one holds. */
export function knee(points: Load[], given: number | null): Knee {
  const ascending = [...points].sort((a, b) => a.load - b.load);
  const lowest = ascending.find((point) => point.valid && point.p99 !== null)?.p99 ?? null;
  const bound = given ?? (lowest === null ? null : BOUND_MULTIPLE * lowest);
  const found: Knee = { load: null, p99: null, bound, stop: null };
  for (const point of ascending) {
    const why = failing(point, bound);
    if (why === null) {
      found.load = point.load;
      found.p99 = point.p99;
      found.stop = null;
    } else if (why === "lossy" || why === "late") {
      return { ...found, stop: { load: point.load, why } };
    } else {
      found.stop ??= { load: point.load, why };
    }
  }
  return found;
}

function failing(point: Load, bound: number | null): NonNullable<Knee["stop"]>["why"] | null {
  if (point.p99 === null || point.ratio === null || bound === null) return point.valid ? "not measured" : "unreliable";
  if (!point.valid) return "unreliable";
  if (point.ratio < SUSTAINED_RATIO) return "lossy";
  return point.p99 > bound ? "late" : null;
}
