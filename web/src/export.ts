/** Downloads: CSV and JSON made of the page's own data. */
import { record } from "./data";
import type { Page, Result, Run } from "./model";
import { csv, fileName, type Field } from "./text";

/** Hands a file to the reader. */
export function save(name: string, type: string, ...parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  // The browser has its own reference once the download has begun.
  window.setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export function saveSummary(result: Result): void {
  save(fileName(result.name, "-summary.csv"), "text/csv;charset=utf-8", result.summary_csv);
}

/** The cells with their axes and figures, and what the figures are. */
export function saveCells(page: Page, result: Result): void {
  const { name, title, question, constants, systems, axes, cells, points, claims, capacities } = result;
  const all = { pubmark: page.pubmark, figures: page.figures, quantiles: page.quantiles, name, title, question, constants, systems, axes, points, cells, claims, capacities };
  save(fileName(name, "-cells.json"), "application/json", JSON.stringify(all));
}

/** Runs as rows of CSV, the header first. */
export function runRows(result: Result, runs: readonly Run[]): Field[][] {
  const axes = result.axes.map((axis) => axis.name);
  const head = [...axes, "repeat", "started", "verdict", "reasons", "notes", "latency_p50_ns", "latency_p99_ns", "delivered_per_s", "delivered_ratio", "lost", "duplicated", "acked", "acked_lost", "refused", "cpu_cores"];
  const rows = runs.map((run): Field[] => {
    const cell = result.cells[run.cell];
    const verdict = run.failed ? "failed" : run.valid ? "valid" : run.partly ? "partly" : "invalid";
    return [
      ...axes.map((axis) => cell?.axes[axis]),
      run.repeat, run.started, verdict, run.reasons.join(" "), run.notes,
      run.p50, run.p99, run.delivered_per_s, run.delivered_ratio, run.lost, run.duplicated, run.acked, run.acked_lost, run.refused, run.cpu_cores,
    ];
  });
  return [head, ...rows];
}

export function saveRuns(result: Result, runs: readonly Run[]): void {
  save(fileName(result.name, "-runs.csv"), "text/csv;charset=utf-8", csv(runRows(result, runs)));
}

/** Records unpacked before the page gets a turn to answer its reader. */
const BATCH = 50;

/** All records of a result as JSON Lines, unpacked one after the other. */
export async function saveRecords(result: Result, index: number, progress: (done: number) => void): Promise<void> {
  const parts: string[] = [];
  for (let run = 0; run < result.records.length; run += 1) {
    parts.push(`${JSON.stringify(await record(index, run))}\n`);
    if ((run + 1) % BATCH === 0) {
      progress(run + 1);
      await new Promise((resume) => window.setTimeout(resume));
    }
  }
  save(fileName(result.name, "-runs.jsonl"), "application/jsonl", new Blob(parts));
}

export async function saveRecord(result: Result, index: number, run: number): Promise<void> {
  const text = JSON.stringify(await record(index, run), null, 2);
  save(fileName(result.name, `-run-${run + 1}.json`), "application/json", text);
}
