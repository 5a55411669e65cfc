// What a reader can ask of the figures: distances, any figure over any axis, constraints.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chart, drawAll, numbers, pageData, section, until } from "./browser.mjs";
import { at } from "./world.mjs";

const HASH = "#slice.payload=1KiB&slice.subscribers=2&slice.rate=2000";

test("the distance to the best has a row for each system that is ranked, with its range", async () => {
  await at("large", { hash: HASH }, async (tab) => {
    await drawAll(tab);
    const { results: [{ cells, points }] } = await pageData(tab);
    const point = points.find(({ axes }) => axes.payload === 1024 && axes.subscribers === 2 && axes.rate === 2000);
    const there = point.cells.map((cell) => cells[cell]).filter(({ word }) => ["winner", "tie", "candidate", "behind"].includes(word));
    const rows = (await numbers(chart(tab, "distance"))).slice(1);
    assert.deepEqual(rows.map(([system, word]) => [system, word]).sort(), there.map(({ system, word }) => [system, word]).sort());
    const best = there.find(({ system }) => system === point.ranks.latency_p50_ns.systems[0]).figures.latency_p50_ns[0];
    for (const [system, , , , , ratio, least] of rows) {
      const cell = there.find((cell) => cell.system === system);
      assert.ok(Math.abs(parseFloat(ratio) - cell.figures.latency_p50_ns[0] / best) < 0.01, `${system} ${ratio}`);
      if (cell.distance === null) assert.equal(least, "–");
      else assert.ok(Math.abs(parseFloat(least) - cell.distance[0]) < 0.01, `${system} ${least}`);
    }
  });
});

test("any figure is drawn over any axis, and the median with bars from min to p95", async () => {
  await at("large", { hash: HASH }, async (tab) => {
    await section(tab, "Latency");
    await drawAll(tab);
    const load = chart(tab, "load");
    const title = () => load.getByRole("heading", { level: 3 }).textContent();
    assert.equal(await title(), "Latency against load");
    await load.locator('[data-control="latency"]').selectOption("rss_bytes_max");
    await load.locator('[data-control="x"]').selectOption("payload");
    await until(tab, () => document.querySelector('figure[data-chart="load"] h3').textContent === "Memory, largest against payload");
    const memory = await numbers(load);
    assert.equal(memory[0][4], "memory, largest");
    assert.ok(memory.slice(1).every((row) => row[4].endsWith("B")), memory[1].join());
    await load.locator('[data-control="latency"]').selectOption("range");
    await until(tab, () => document.querySelector('figure[data-chart="load"] h3').textContent === "Latency against payload");
    assert.deepEqual((await numbers(load))[0].filter((head) => head.startsWith("latency")), ["latency p50", "latency min", "latency p95"]);
    assert.match(await tab.evaluate(() => location.hash), /latency=range/);
  });
});

test("constraints count the points at which each system fits, and the address keeps them", async () => {
  await at("large", {}, async (tab) => {
    const form = (await section(tab, "Answer")).getByRole("group", { name: "Which systems fit?" });
    const constraint = (index) => form.getByRole("group", { name: `Constraint ${index}` });
    await constraint(1).getByLabel("figure").selectOption("latency_p50_ns");
    await constraint(1).getByLabel("Bound 1").fill("much");
    await constraint(1).getByLabel("Bound 1").press("Enter");
    await constraint(1).getByRole("alert").waitFor();
    await constraint(1).getByLabel("Bound 1").fill("45 us");
    await constraint(1).getByLabel("Bound 1").press("Enter");
    await constraint(2).getByLabel("and").selectOption("delivered_ratio");
    await constraint(2).getByLabel("Bound 2").fill("99 %");
    await constraint(2).getByLabel("Bound 2").press("Enter");
    await form.getByLabel("rate").selectOption("1000");
    await until(tab, () => /fit\.2\.bound=.*fit\.at\.rate=1000/.test(location.hash));
    const table = form.getByRole("table", { name: "Systems that meet the constraints" });
    const { results: [{ cells }] } = await pageData(tab);
    const due = (system) => {
      const own = cells.filter((cell) => cell.system === system && cell.axes.rate === 1000 && cell.status !== "skipped");
      const yes = own.filter(({ figures, unquoted }) => figures.latency_p50_ns[2] < 45_000 && figures.delivered_ratio[1] > 0.99 && !unquoted);
      return `${yes.length} of ${own.length}`;
    };
    const shown = async () => Object.fromEntries(await table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [row.cells[0].textContent, row.cells[1].textContent])));
    const expected = Object.fromEntries(["zeromq", "nanomsg", "nng"].map((system) => [system, due(system)]));
    await until(tab, (text) => document.querySelector(".fit-found table")?.textContent.includes(text), expected.nng);
    assert.deepEqual(await shown(), expected);
    await tab.reload();
    await table.waitFor();
    assert.deepEqual(await shown(), expected, "the address keeps it");
    await constraint(2).getByRole("button", { name: "Remove constraint 2" }).click();
    await until(tab, () => !location.hash.includes("fit.2."));
  });
});
