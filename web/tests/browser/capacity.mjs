// Searches for a capacity: the answer, and the curve through the knee.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawAll, pageData, section } from "./browser.mjs";
import { at } from "./world.mjs";

const chart = (tab, index) => tab.locator(`figure[data-chart="capacity-${index}"]`);

test("each search says its answer with the interval and what limits it", async () => {
  await at("capacity", {}, async (tab) => {
    const shown = await section(tab, "Capacity");
    const { results: [{ capacities, findings }] } = await pageData(tab);
    assert.equal(capacities.length, 2);
    const said = await shown.locator("p.prose").allTextContents();
    assert.deepEqual(said, capacities.map(({ sentence }) => sentence));
    for (const [index, due] of [1_000, 500].entries()) {
      const { lo, estimate, hi, limited_by: by } = capacities[index];
      assert.ok(lo <= estimate && estimate <= hi && Math.abs(estimate / due - 1) < 0.06, `${lo} ${estimate} ${hi}`);
      assert.equal(by, "latency");
      assert.match(said[index], /holds up to .* \(.* to .*, 90 %(; ±\d+ % of this is machine drift)?\)\. Limited by latency/);
    }
    const rows = await shown.getByRole("table", { name: "The capacity of each" }).getByRole("row").allTextContents();
    assert.equal(rows.length, 3);
    assert.match(rows[1], /send_cost=1ms.*\/s \(.* to .*\)latencyyesreference$/);
    // The opening says it too, under its name.
    assert.deepEqual(findings.filter(({ about }) => about === "capacity").length, 2);
    const answer = await section(tab, "Answer");
    assert.equal(await answer.locator("dl.findings dt").filter({ hasText: "Capacity" }).count(), 2);
  });
});

test("the curve through the knee: steps that held and failed differ in shape, and the table has each", async () => {
  await at("capacity", {}, async (tab, { records }) => {
    await section(tab, "Capacity");
    await drawAll(tab);
    const { results: [{ capacities: [search] }] } = await pageData(tab);
    const figure = chart(tab, 0);
    const fold = figure.locator("details.data");
    await fold.locator("summary").click();
    await fold.getByRole("table").waitFor();
    const rows = await fold.getByRole("row").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows[0], ["load", "the objective", "offered", "delivered", "latency p50", "latency p99", "server, processors", "server, memory", "window"]);
    const own = records.filter((run) => run.cell["options.send_cost"] === "1ms");
    assert.equal(rows.length - 1, own.length, "a row a step");
    const words = (word) => rows.filter((row) => row[1].startsWith(word)).length;
    const [held, failed] = [words("held"), words("failed")];
    assert.ok(held > 3 && failed > 1, `${held} held, ${failed} failed`);
    assert.equal(rows.filter((row) => row[1].includes("disturbed, as the machine was busy, repeated")).length, 1);
    assert.equal(rows.filter((row) => row[1].includes("at full length")).length, 1);
    // Four panels have a mark for each step, and its shape says what it says.
    const outlines = await figure.locator(".plot svg path").evaluateAll((paths) => paths.map((path) => path.getAttribute("d")));
    assert.ok(outlines.length > 4 * search.steps.length, `${outlines.length} paths`);
    const fills = await figure.locator(".plot svg path").evaluateAll((paths) => [...new Set(paths.map((path) => path.getAttribute("fill")))]);
    assert.ok(fills.length > 2, fills.join());
    const text = await figure.locator(".plot svg").textContent();
    for (const panel of ["messages: delivered, offered (dashed)", "latency: p99, p50 (dashed)", "server: processors", "server: memory"]) assert.ok(text.includes(panel), panel);
    assert.match(text, /\/s \(.*\/s to .*\/s\)/, "the interval stands above the curve");
    const caption = await figure.locator("figcaption").textContent();
    for (const said of ["disc: the objective held", "cross: it did not hold", "hollow diamond: the step shows nothing", "Ringed", "Shaded", "p99 < 10ms and lost = 0"]) assert.ok(caption.includes(said), caption);
  });
});

test("a mark of the curve opens the evidence of its step", async () => {
  await at("capacity", {}, async (tab) => {
    await section(tab, "Capacity");
    await drawAll(tab);
    const marks = chart(tab, 0).locator('.plot svg path[transform][fill]:not([fill="none"]):not([fill="transparent"])');
    await marks.first().scrollIntoViewIfNeeded();
    // Charts that are drawn while the page is idle move what is below them.
    let box = await marks.first().boundingBox();
    for (let before; before?.y !== box.y; ) {
      before = box;
      await tab.evaluate(() => new Promise((idle) => requestIdleCallback(() => requestAnimationFrame(idle))));
      box = await marks.first().boundingBox();
    }
    await tab.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    const dialog = tab.getByRole("dialog");
    await dialog.waitFor();
    assert.match(await dialog.getByRole("heading", { level: 2 }).textContent(), /mock/);
  });
});

test("a square of the map by capacity: the card has what the search of each system has found, the best first", async () => {
  await at("asked", {}, async (tab) => {
    const { results: [{ capacities, points }] } = await pageData(tab);
    assert.deepEqual(points.map(({ searches }) => searches.map((index) => capacities[index].system).sort()), [["slow", "swift"], ["slow", "swift"]]);
    const map = (await section(tab, "Map of winners")).locator('figure[data-chart="map"]');
    await map.getByLabel("best by").selectOption({ label: "capacity" });
    await map.locator("tbody button").first().click();
    const card = tab.getByRole("dialog", { name: "Point of the map" });
    const rows = await card.getByRole("row").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
    assert.deepEqual(rows[0], ["system", "holds up to", "limited by", "verdict", "steps"]);
    assert.deepEqual(rows.slice(1).map(([name]) => name), ["swift", "slow"]);
    for (const [row, due, stands] of [[rows[1], 1_000, "winner"], [rows[2], 500, "behind"]]) {
      const search = capacities.find(({ system, label }) => system === row[0] && points[0].searches.some((index) => capacities[index].label === label));
      assert.ok(search.lo <= due * 1.06 && search.hi >= due * 0.94, JSON.stringify(search));
      assert.match(row[1], /\/s \(.*\/s to .*\/s\)$/);
      assert.deepEqual(row.slice(2), ["latency", stands, String(search.curve.reduce((steps, { counted }) => steps + counted, 0))]);
    }
  });
});
