import type { Section } from "../context";
import { h, type Child } from "../dom";
import { saveCells, saveRecords, saveRuns, saveSummary } from "../export";
import { many } from "../text";

/** The data as files. */
export const downloads: Section = {
  id: "downloads",
  title: "Downloads",
  has: () => true,
  render({ page, result, index }) {
    const row = (button: HTMLElement, about: Child): HTMLElement => h("li", null, button, h("span", { class: "muted" }, about));
    const button = (text: string, act: () => void): HTMLButtonElement => h("button", { type: "button", onclick: act }, text);
    const said = h("span", { role: "status", class: "muted" });
    const records = button("runs.jsonl", () => {
      records.disabled = true;
      const progress = (done: number): void => said.replaceChildren(`unpacking: ${done.toLocaleString("en")} of ${many(result.records.length, "record")}`);
      saveRecords(result, index, progress)
        .then(() => said.replaceChildren(), (error: unknown) => said.replaceChildren(`not made: ${String(error).slice(0, 200)}`))
        .finally(() => (records.disabled = false));
    });
    return h(
      "div",
      null,
      h(
        "ul",
        { class: "files" },
        row(button("summary.csv", () => saveSummary(result)), "a row a cell: every figure with its interval, as in the results folder"),
        row(button("cells.json", () => saveCells(page, result)), "the same with percentile curves, distributions and rankings"),
        row(button("runs.csv", () => saveRuns(result, result.records)), "a row a run, its main figures and its verdict"),
        row(records, ["a record a run, everything but the histograms ", said]),
      ),
      h("p", { class: "muted" }, "Each chart can be downloaded by itself, and each run's record in its evidence."),
    );
  },
};
