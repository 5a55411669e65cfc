import { chart } from "../charts/chart";
import { absentList, systemsOf } from "../charts/over";
import { curves, percentiles } from "../charts/percentiles";
import { ridges, type Ridge } from "../charts/ridges";
import type { Context, Section } from "../context";
import { h } from "../dom";
import { loadChart } from "./load";
import { at, drawBars, floorToggle, nothing, serviceToggle } from "./shared";
import { cut, cutWords, sliceBar, usefulness, type Cut } from "./slice";

/** Latency: its percentiles, where it lies, how it grows with the load. */
export const latency: Section = {
  id: "latency",
  title: "Latency",
  render(context) {
    const cells = context.result.cells.filter((cell) => !cell.unthrottled);
    if (!cells.some((cell) => cell.latency || cell.figures["latency_p50_ns"])) return null;
    const now = () => cut(context, cells, [], usefulness("latency_p50_ns"));
    return h(
      "div",
      null,
      sliceBar(context, now),
      percentileChart(context, now),
      loadChart(context, cells),
      h("div", { class: "chart-grid" }, cells.some((cell) => cell.distribution) && distributionChart(context, now), cells.some((cell) => cell.figures["jitter_ns"]) && jitterChart(context, now)),
    );
  },
};

const FROM_INTENDED = "Latency counts from the intended time of sending.";
const FROM_ACTUAL = " Dotted: service latency, from the actual send time, which hides what waited to be sent.";

function percentileChart(context: Context, now: () => Cut): HTMLElement {
  return chart(
    {
      id: "percentiles",
      title: "Latency by percentile",
      controls: () => [serviceToggle(context), floorToggle(context)],
      draw(frame) {
        const { slices, cells } = now();
        const service = context.state.is("service");
        const floor = context.state.is("floor");
        const shown = curves(context, cells, service, floor);
        if (shown.length === 0) return nothing(cells, floor);
        const with_ = new Set(shown.map(({ cell }) => cell));
        return {
          ...percentiles(context, frame, shown, floor),
          systems: systemsOf(context, [...with_]),
          absent: absentList(cells, null, (cell) => with_.has(cell), floor ? context : null),
          caption: [
            `${at(cutWords(slices))}${FROM_INTENDED} Runs merged; a curve ends where its samples do.`,
            service ? FROM_ACTUAL : "",
            cells.some(({ status }) => status === "invalid") ? " Broken and pale: not valid, not to be quoted." : "",
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
      controls: () => [serviceToggle(context)],
      draw(frame) {
        const { slices, cells } = now();
        const all = cells.flatMap((cell): Ridge[] => {
          const index = context.result.cells.indexOf(cell);
          const own = cell.distribution ? [{ cell, index, service: false, distribution: cell.distribution }] : [];
          const served = context.state.is("service") && cell.service_distribution;
          return served ? [...own, { cell, index, service: true, distribution: served }] : own;
        });
        if (all.length === 0) return nothing(cells, false);
        return {
          ...ridges(frame, all, context.page.bins_per_decade),
          systems: systemsOf(context, all.map(({ cell }) => cell)),
          named: true,
          absent: absentList(cells, null, (cell) => cell.distribution !== undefined),
          caption: [
            `${at(cutWords(slices))}Share of messages by bin, ${context.page.bins_per_decade} bins a decade, all rows to the same scale. ${FROM_INTENDED}`,
            context.state.is("service") ? FROM_ACTUAL : "",
            cells.some(({ status }) => status === "invalid") ? " Pale and dashed: not valid, not to be quoted." : "",
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
