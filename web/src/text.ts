/** Strings from records, made fit to be seen, to be a file's name, and to be
 *  read back by a spreadsheet. Pure functions. */

// Control characters, and those that change the direction of the text around them.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
// The same, but line feed and tab, which a log or a command may have.
const UNSEEN_IN_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** The first characters of a text, never half of one. */
function cut(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const last = text.charCodeAt(chars - 1);
  return `${text.slice(0, last >= 0xd800 && last < 0xdc00 ? chars - 1 : chars)}…`;
}

/** One line for people: control and direction characters replaced, cut. */
export function clean(text: string, chars = 300): string {
  return cut(text, chars).replace(UNSEEN, "\u00b7");
}

/** The same of a text of several lines. */
export function cleanLines(text: string, chars = 20_000): string {
  return cut(text, chars).replace(UNSEEN_IN_LINES, "\u00b7");
}

/** A file's name that every system takes; never empty, never hidden. */
export function fileName(name: string, ending: string): string {
  const safe = name.slice(0, 80).replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[.-]+|[.-]+$/g, "");
  return `${safe || "pubmark"}${ending}`;
}

export type Field = string | number | boolean | null | undefined;

/** A field of a CSV file (RFC 4180). Text that a spreadsheet would take for a
 *  formula gets an apostrophe before it, as OWASP advises. */
export function csvField(value: Field): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows as a CSV file, the header among them. */
export function csv(rows: readonly (readonly Field[])[]): string {
  return rows.map((row) => `${row.map(csvField).join(",")}\n`).join("");
}

/** `1 run`, `12 runs`. */
export function many(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : several}`;
}
