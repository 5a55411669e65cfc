// What is downloaded is right: every file is read back.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { chart, downloaded, drawAll, section } from "./browser.mjs";
import { at, csv, verdict } from "./world.mjs";

const key = (record) => JSON.stringify([Object.entries(record.cell).sort(), record.repeat]);

test("summary.csv is the program's own, byte for byte", async () => {
  await at("large", {}, async (tab, { folders }) => {
    const downloads = await section(tab, "Downloads");
    const file = await downloaded(tab, () => downloads.getByRole("button", { name: "summary.csv" }).click());
    assert.equal(file.name, "large-summary.csv");
    assert.equal(file.text, readFileSync(join(folders[0], "summary.csv"), "utf8"));
  });
});

test("cells.json, runs.csv and runs.jsonl hold every cell and every run", async () => {
  await at("failures", {}, async (tab, { records }) => {
    const downloads = await section(tab, "Downloads");
    const get = (name) => downloaded(tab, () => downloads.getByRole("button", { name }).click());
    const { cells, points } = JSON.parse((await get("cells.json")).text);
    assert.equal(cells.length, 12);
    assert.deepEqual([...new Set(points.flatMap((point) => point.cells))].sort((a, b) => a - b), cells.map((_, index) => index));
    const rows = csv((await get("runs.csv")).text);
    assert.deepEqual(rows.map((row) => row.verdict).sort(), records.map(verdict).sort());
    const lines = (await get("runs.jsonl")).text.trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.equal(lines.length, records.length);
    const kept = new Map(lines.map((line) => [key(line), line]));
    for (const { histograms, ...record } of records) {
      const { histograms: _, ...line } = kept.get(key(record));
      for (const field of ["system", "repeat", "counts", "rates", "latency_ns", "verdict", "options", "error", "series"]) assert.deepEqual(line[field], record[field], field);
    }
  });
});

test("a run's record is downloaded as it was written", async () => {
  await at("server", { hash: "#run=0" }, async (tab, { records }) => {
    const file = await downloaded(tab, () => tab.getByRole("dialog").getByRole("button", { name: "Record as JSON" }).click());
    const { fault_log, counts, deployment } = JSON.parse(file.text);
    assert.deepEqual([fault_log, counts, deployment], [records[0].fault_log, records[0].counts, records[0].deployment]);
  });
});

for (const id of ["percentiles", "load", "map", "cpu"]) {
  test(`the chart \`${id}\` is downloaded as SVG, PNG and CSV`, async () => {
    await at("large", {}, async (tab) => {
      await drawAll(tab);
      const figure = chart(tab, id);
      const get = async (name) => {
        await figure.locator("details.menu > summary").click();
        return downloaded(tab, () => figure.locator("details.menu").getByRole("button", { name }).click());
      };
      const svg = await get("SVG");
      assert.match(svg.name, /^large-.*\.svg$/);
      const [root, marks, faults, title] = await tab.evaluate((text) => {
        const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
        return [parsed.documentElement.localName, parsed.querySelectorAll("path, rect").length, parsed.querySelectorAll("parsererror").length, parsed.querySelector("text").textContent];
      }, svg.text);
      assert.deepEqual([root, faults], ["svg", 0]);
      assert.ok(marks > 5 && title.startsWith("Fan-out by payload"), `${marks} marks, ${title}`);
      const { bytes } = await get("PNG");
      assert.equal(bytes.subarray(1, 4).toString(), "PNG");
      const size = /<svg[^>]* width="([\d.]+)"/.exec(svg.text)[1];
      assert.equal(bytes.readUInt32BE(16), Math.floor(Number(size) * 2), "twice as many pixels as points");
      const rows = csv((await get("CSV")).text);
      await figure.locator("details.data > summary").click();
      assert.equal(rows.length, (await figure.locator("details.data").getByRole("row").count()) - 1);
    });
  });
}
