import type { Page, RunRecord } from "./model";

/** Reads the page's data out of the page. */
export function embedded(): Page | null {
  const text = document.getElementById("pubmark-page")?.textContent;
  return text ? (JSON.parse(text) as Page) : null;
}

let packed: string[][] | null = null;

/** A run's whole record, unpacked when it is asked for: result and run by index. */
export async function record(result: number, run: number): Promise<RunRecord> {
  packed ??= JSON.parse(document.getElementById("pubmark-records")?.textContent ?? "[]") as string[][];
  const text = packed[result]?.[run];
  if (text === undefined) throw new Error(`the page has no record ${run} of result ${result}`);
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(stream).json()) as RunRecord;
}

/** What a program that is still at work says of itself. */
export interface Status {
  running: boolean;
  label: string;
  phase: string;
  sent: number;
  received: number;
  sent_per_s: number;
  received_per_s: number;
  lag_ns: number | null;
  done: number;
  runs: number;
  eta_s: number | null;
}

/** Replaces the records by those that a live page was sent. */
export function adopt(records: string[][]): void {
  packed = records;
}
