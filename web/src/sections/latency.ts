import { chart } from "../charts/chart";
import { absentList, systemsOf } from "../charts/over";
import { curves, percentiles } from "../charts/percentiles";
import { ridges, type Ridge } from "../charts/ridges";
import { spoiled, type Context, type Section } from "../context";
import { h } from "../dom";
import type { LatencyKind } from "../model";
import { distanceChart } from "./distance";
import { loadChart } from "./load";
import { at, drawBars, floorToggle, KINDS, kindOf, kindToggle, nothing } from "./shared";
import { cut, cutWords, sliceBar, usefulness, type Cut } from "./slice";

/** Latency: its percentiles, where it lies, how it grows with the load. */
export const latency: Section = {
  id: "latency",
  title: "Latency",
  has: ({ result }) => result.cells.some((cell) => !cell.unthrottled && (cell.curves.latency || cell.figures["latency_p50_ns"])),
  render(context) {
    const cells = context.result.cells.filter((cell) => !cell.unthrottled);
    const now = () => cut(context, cells, [], usefulness("latency_p50_ns"));
    return h(
      "div",
      null,
      sliceBar(context, now),
      percentileChart(context, now),
      distanceChart(context, "distance", cells, now),
      loadChart(context, cells),
      h("div", { class: "chart-grid" }, cells.some((cell) => cell.curves.latency) && distributionChart(context, now), cells.some((cell) => cell.figures["jitter_ns"]) && jitterChart(context, now)),
    );
  },
};

/** What the curves count from; the headline stands beside another kind, dotted. */
function from(context: Context): string {
  const kind = kindOf(context);
  return `${KINDS[kind].from}${kind === "latency" ? "" : " Dotted: the headline."}`;
}

/** The figure that decides whether a cell's curve is reliable. */
const TAIL = "latency_p99_ns";

function percentileChart(context: Context, now: () => Cut): HTMLElement {
  return chart(
    {
      id: "percentiles",
      title: "Latency by percentile",
      controls: () => [kindToggle(context), floorToggle(context)],
      draw(frame) {
        const { slices, cells } = now();
        const kind = kindOf(context);
        const floor = context.state.is("floor");
        const shown = curves(context, cells, kind, floor);
        if (shown.length === 0) return nothing(cells, floor);
        const with_ = new Set(shown.map(({ cell }) => cell));
        return {
          ...percentiles(context, frame, shown, floor),
          systems: systemsOf(context, [...with_]),
          absent: absentList(cells, null, (cell) => with_.has(cell), floor ? context : null),
          caption: [
            `${at(cutWords(slices))}${from(context)} The runs' messages merged into one curve, which ends where its samples do; the figures of the tables are medians over the runs.`,
            cells.some((cell) => spoiled(cell, TAIL)) ? " Broken and pale: unreliable." : "",
          ],
        };
      },
    },
    context,
  );
}

function distributionChart(context: Context, now: () => Cut): HTMLElement {
  return chart(
    {
      id: "distribution",
      title: "Distribution of latency",
      controls: () => [kindToggle(context)],
      draw(frame) {
        const { slices, cells } = now();
        const all = cells.flatMap((cell): Ridge[] => {
          const index = context.result.cells.indexOf(cell);
          const kind = kindOf(context);
          const of = (kind: LatencyKind, beside: boolean): Ridge[] => {
            const curve = cell.curves[kind];
            return curve ? [{ cell, index, kind, beside, distribution: curve.distribution }] : [];
          };
          return [...of(kind, false), ...(kind === "latency" ? [] : of("latency", true))];
        });
        if (all.length === 0) return nothing(cells, false);
        return {
          ...ridges(frame, all, context.page.bins_per_decade),
          systems: systemsOf(context, all.map(({ cell }) => cell)),
          named: true,
          absent: absentList(cells, null, (cell) => cell.curves[kindOf(context)] !== undefined),
          caption: [
            `${at(cutWords(slices))}Share of messages by bin, ${context.page.bins_per_decade} bins a decade, all rows to the same scale, the runs merged. ${from(context)}`,
            cells.some((cell) => spoiled(cell, TAIL)) ? " Pale and dashed: unreliable." : "",
          ],
        };
      },
    },
    context,
  );
}

function jitterChart(context: Context, now: () => Cut): HTMLElement {
  return chart({ id: "jitter", title: "Jitter", draw: (frame) => drawBars(context, frame, now(), "jitter_ns", "Mean difference of latency between a message and the one before it in the same stream (RFC 3393).") }, context);
}
