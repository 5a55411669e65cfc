// What the tests share: one browser, and each fixture made once.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { FIXTURES } from "../fixtures/all.mjs";
import { fresh, records, report } from "../fixtures/program.mjs";
import { launch, visit } from "./browser.mjs";

const folder = mkdtempSync(join(tmpdir(), "pubmark-page-"));
const made = new Map();
let started = null;

/** The one browser. */
export const browser = () => (started ??= launch());

after(async () => {
  await (await started)?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A fixture: its page, its folders, and the records of the first of them. */
export function fixture(name) {
  if (!made.has(name)) {
    const folders = FIXTURES[name](fresh(join(folder, name)));
    made.set(name, { name, folders, page: report(...folders), records: records(folders[0]) });
  }
  return made.get(name);
}

/** Opens a fixture's page for a test; the page must have nothing to say. */
export async function at(name, options, act) {
  const found = fixture(name);
  await visit(await browser(), found.page, options, (tab) => act(tab, found));
}

/** Verdict of a record in the page's word. */
/** Whether some figure of a record, or all, is unreliable. */
export const isUnreliable = (record) => ["partly", "invalid"].includes(verdict(record));
export const verdict = (record) => (record.error !== null ? "failed" : record.verdict.valid ? "valid" : isPartly(record) ? "partly" : "invalid");

/** What stands or falls together where something spoils a run. */
const GROUPS = ["counts", "rates", "latency_p50", "latency_p99", "cost"];

/** Whether there is a figure that no reason touches; one that does not say what it touches, touches all. */
const isPartly = ({ verdict: { reasons } }) => reasons.length > 0 && GROUPS.some((group) => reasons.every(({ figures }) => figures && !figures.includes(group)));

/** How many of each. */
export function tally(values) {
  const counts = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

/** Rows of a CSV file (RFC 4180), by column of its header. */
export function csv(text) {
  const rows = [[]];
  let field = "";
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text[(i += 1)];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ",") {
      rows.at(-1).push(field);
      field = "";
    } else if (c === "\n") {
      rows.at(-1).push(field.replace(/\r$/, ""));
      field = "";
      rows.push([]);
    } else field += c;
  }
  if (field !== "") rows.at(-1).push(field);
  const [head, ...body] = rows.filter((row) => row.length > 0);
  return body.map((row) => Object.fromEntries(head.map((name, index) => [name, row[index]])));
}
