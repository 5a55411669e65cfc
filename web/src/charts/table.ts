/** The numbers of a chart, for those who read rather than look. */
export interface Table {
  columns: string[];
  /** Text is shown as it is; of a number both what is shown and what is exported. */
  rows: Entry[][];
}

export type Entry = string | { text: string; value: number | null };

/** A field of a CSV file (RFC 4180) that no spreadsheet takes for a formula:
 *  an apostrophe is put before what would begin one. */
export function csvField(entry: Entry): string {
  if (typeof entry !== "string") return entry.value === null || !Number.isFinite(entry.value) ? "" : String(entry.value);
  const safe = /^[=+\-@\t\r]/.test(entry) ? `'${entry}` : entry;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A table as CSV. */
export function csv(table: Table): string {
  return [table.columns, ...table.rows].map((row) => row.map(csvField).join(",") + "\r\n").join("");
}
