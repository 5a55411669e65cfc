import type { Cell } from "../model";

const ONE_RECEIVER = new Set(["pairs", "fan-in", "pipeline", "request-reply"]);

/** How many subscribers each message of a cell goes to. Where the pattern and the
 *  axes do not say, it is what the best of the cells with the same workload
 *  shows: delivered, over the share that was delivered, over sent. Null where
 *  that cannot be known. */
export function receivers(cell: Cell, same: Cell[]): number | null {
  if (ONE_RECEIVER.has(cell.pattern)) return 1;
  const given = cell.axes["subscribers"];
  if (cell.pattern === "fan-out" && typeof given === "number") return given;
  const figure = (of: Cell, key: string) => of.figures[key]?.[0] ?? 0;
  const best = same
    .filter((other) => figure(other, "delivered_ratio") > 0 && figure(other, "sent_per_s") > 0)
    .sort((a, b) => figure(b, "delivered_ratio") - figure(a, "delivered_ratio"))[0];
  if (best === undefined) return null;
  return Math.max(1, Math.round(figure(best, "delivered_per_s") / figure(best, "delivered_ratio") / figure(best, "sent_per_s")));
}
