// The figures that are shown are those that the program has computed.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { drawAll, section } from "./browser.mjs";
import { at, csv } from "./world.mjs";

/** Microseconds with three digits, for times from 1 µs to 1 ms. */
const micros = (ns) => {
  assert.ok(ns >= 1e3 && ns < 999_500, `${ns} ns`);
  return `${Number(ns / 1e3).toPrecision(3)} µs`;
};

const summary = (folder) => csv(readFileSync(join(folder, "summary.csv"), "utf8"));

test("a cell's figures and intervals are those of summary.csv", async () => {
  await at("large", {}, async (tab, { folders }) => {
    const row = summary(folders[0]).find((row) => row.system === "nanomsg" && row.payload === "1024" && row.subscribers === "2" && row.rate === "2000");
    const cells = await section(tab, "All cells");
    await cells.getByLabel("Find").fill("nanomsg 1KiB subscribers=2 rate=2000");
    await cells.getByText("1 row", { exact: true }).waitFor();
    await cells.getByRole("button", { name: /^Evidence: nanomsg 1KiB/ }).click();
    const dialog = tab.getByRole("dialog");
    for (const [label, key] of [["latency p50", "latency_p50_ns"], ["latency p99", "latency_p99_ns"], ["service latency p99", "service_latency_p99_ns"]]) {
      const cells = await dialog.getByRole("row").filter({ has: tab.getByRole("rowheader", { name: label, exact: true }) }).first().getByRole("cell").allTextContents();
      assert.equal(cells[0], micros(Number(row[key])), key);
      assert.equal(cells[1], `${micros(Number(row[`${key}_lo`]))} to ${micros(Number(row[`${key}_hi`]))}`, key);
    }
    assert.equal(await dialog.locator("[data-run], button.link").filter({ hasText: /^run \d+$/ }).count(), Number(row.runs));
  });
});

test("the map names whom summary.csv calls the winner, and those that it says tie", async () => {
  await at("large", {}, async (tab, { folders }) => {
    await drawAll(tab);
    const map = tab.locator('figure[data-chart="map"]');
    const sizes = { "64B": "64", "256B": "256", "1KiB": "1024", "2KiB": "2048", "4KiB": "4096" };
    let winners = 0;
    let ties = 0;
    const rates = new Set();
    for (const panel of await map.locator("table.map-grid").all()) {
      const rate = /^rate (\d+)/.exec(await panel.locator("caption").textContent())[1];
      rates.add(rate);
      const rows = summary(folders[0]).filter((row) => row.rate === rate && row.system !== "kernel" && Number(row.valid_runs) > 0);
      const columns = (await panel.locator("thead th").allTextContents()).slice(1);
      assert.deepEqual(columns, Object.keys(sizes));
      for (const line of await panel.locator("tbody tr").all()) {
        const subscribers = await line.getByRole("rowheader").textContent();
        const squares = await line.getByRole("button").all();
        assert.equal(squares.length, columns.length);
        for (const [index, square] of squares.entries()) {
          const there = rows.filter((row) => row.payload === sizes[columns[index]] && row.subscribers === subscribers);
          const called = (word) => there.filter((row) => row.verdict === word).map((row) => row.system);
          const name = await square.textContent();
          const kind = /square (\w+)/.exec(await square.getAttribute("class"))[1];
          if (kind === "winner") {
            winners += 1;
            assert.equal(called("winner").length, 1);
            assert.ok(name.includes(called("winner")[0]), `${name}: ${called("winner")}`);
            const lowest = there.toSorted((a, b) => Number(a.latency_p50_ns) - Number(b.latency_p50_ns))[0];
            assert.equal(lowest.system, called("winner")[0]);
          } else assert.deepEqual(called("winner"), [], name);
          if (kind === "tie") {
            ties += 1;
            assert.ok(called("tie").length > 1 && called("tie").every((system) => name.includes(system)), `${name}: ${called("tie")}`);
          } else assert.deepEqual(called("tie"), [], name);
          assert.equal(kind === "open", called("candidate").length > 0, name);
          assert.ok(called("candidate").length <= 2 ? called("candidate").every((system) => name.includes(system)) : true, name);
        }
      }
    }
    assert.deepEqual([...rates], ["1000", "2000", "4000"]);
    assert.ok(winners >= 3 && ties >= 3, `${winners} winners, ${ties} ties`);
  });
});

test("claims stand with their outcome", async () => {
  await at("large", {}, async (tab) => {
    const claims = await section(tab, "Claims");
    const outcome = async (says) => (await claims.getByRole("row").filter({ hasText: says }).getByRole("cell").first().textContent()).replace(/[^a-z]/g, "");
    assert.equal(await outcome("nanomsg has the lowest latency with large payloads"), "holds");
    assert.equal(await outcome("nanomsg delivers most"), "fails");
  });
});

test("published figures stand beside ours, named as another machine's", async () => {
  await at("large", { hash: "#slice.payload=1KiB&slice.subscribers=1&slice.rate=1000" }, async (tab, { folders }) => {
    const found = await section(tab, "Against published figures");
    const figure = found.locator("figure[data-chart]").first();
    await figure.scrollIntoViewIfNeeded();
    await figure.and(tab.locator('[data-drawn="1"]')).waitFor();
    const caption = await figure.locator("figcaption").textContent();
    for (const words of ["another machine: a Xeon of 2020", "Somebody et al., 2020", "1 published figure belongs to no cell"]) assert.ok(caption.includes(words), caption);
    await figure.locator("summary").filter({ hasText: "Data" }).click();
    const row = figure.locator("table").getByRole("row").filter({ hasText: "one way" });
    const ours = summary(folders[0]).find((row) => row.system === "zeromq" && row.payload === "1024" && row.subscribers === "1" && row.rate === "1000");
    const said = await row.textContent();
    for (const words of [micros(Number(ours.latency_p50_ns)), "22.0 µs", `${(Number(ours.latency_p50_ns) / 22_000).toPrecision(3)}×`]) assert.ok(said.includes(words), said);
  });
});
