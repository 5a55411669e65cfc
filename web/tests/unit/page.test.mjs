import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { runRows } = await source("export");
const { csv } = await source("text");
const { plain } = await source("sections/machine");

const run = (of) => ({
  cell: 0, repeat: 1, started: "2026-01-01T00:00:00Z", valid: false, failed: false, reasons: [], notes: 0,
  p50: null, p99: null, delivered_per_s: 0, delivered_ratio: null, lost: 0, duplicated: 0, acked: null, acked_lost: null, cpu_cores: null, ...of,
});

test("a run's row has its cell's axes, its verdict in a word, and no formula", () => {
  const result = { axes: [{ name: "system" }, { name: "rate" }], cells: [{ axes: { system: '=HYPERLINK("x")', rate: 1_000 } }] };
  const rows = runRows(result, [
    run({ valid: true, p50: 12_345.6, delivered_ratio: 0.5 }),
    run({ repeat: 2, reasons: ["not-steady", "clock"] }),
    run({ failed: true, reasons: ["failed"] }),
    // A cell that is not there leaves its axes empty.
    run({ cell: 7 }),
  ]);
  const [head, ...body] = csv(rows).trimEnd().split("\n");
  assert.equal(head.split(",").length, rows[1].length);
  assert.equal(body[0], `"'=HYPERLINK(""x"")",1000,1,2026-01-01T00:00:00Z,valid,,0,12345.6,,0,0.5,0,0,,,,`);
  assert.deepEqual(rows.slice(1).map((row) => [row[4], row[5]]), [["valid", ""], ["invalid", "not-steady clock"], ["failed", "failed"], ["invalid", ""]]);
  assert.ok(body[3].startsWith(",,1,"));
});

test("a fact of the machine is read, whatever form it was kept in", () => {
  assert.equal(plain("2026-11-22T07:18:53.648754378Z"), "2026-11-22 07:18:53 UTC");
  assert.equal(plain('{"soft":20000,"hard":20000}'), "soft 20,000, hard 20,000");
  assert.equal(plain("[0,1]"), "0, 1");
  assert.equal(plain("always [madvise] never"), "always [madvise] never");
  assert.equal(plain("[no list"), "[no list");
  assert.ok(plain(`[${"1,".repeat(50_000)}1]`).length < 400);
});
