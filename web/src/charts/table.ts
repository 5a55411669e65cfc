import type { Unit } from "../model";

/** The numbers of a chart, for those who read rather than look. */
export interface Table {
  columns: string[];
  /** Text is shown as it is; of a number both what is shown and what is exported. */
  rows: Entry[][];
}

export type Entry = string | { text: string; value: number | null; unit?: Unit };

const UNITS: Record<Unit, string> = {
  ns: "ns", per_s: "1/s", bytes_per_s: "B/s", bytes: "B", share: "share", count: "", cores: "cores", multiple: "multiple",
};

/** A field of a CSV file (RFC 4180) that no spreadsheet takes for a formula:
 *  an apostrophe is put before what would begin one. */
export function csvField(entry: Entry): string {
  if (typeof entry !== "string") return entry.value === null || !Number.isFinite(entry.value) ? "" : String(entry.value);
  const safe = /^[=+\-@\t\r]/.test(entry) ? `'${entry}` : entry;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A table as CSV; a column of figures says its unit, for the numbers no longer do. */
export function csv(table: Table): string {
  const heads = table.columns.map((column, i) => {
    const unit = table.rows.map((row) => row[i]).find((entry) => typeof entry === "object" && entry.unit !== undefined);
    const word = typeof unit === "object" && unit.unit ? UNITS[unit.unit] : "";
    return word === "" || column.endsWith(`, ${word}`) ? column : `${column}, ${word}`;
  });
  return [heads, ...table.rows].map((row) => row.map(csvField).join(",") + "\r\n").join("");
}
