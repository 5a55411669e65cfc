// Charts: what their switches change, and what stands in their tables.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chart, drawAll, numbers, section, until } from "./browser.mjs";
import { at } from "./world.mjs";

/** Waits until a figure's text has become another. */
const another = (tab, id, before) => until(tab, ([id, before]) => document.querySelector(`figure[data-chart="${id}"]`).textContent !== before, [id, before]);

test("service latency and multiples of the floor are switched on in every chart", async () => {
  await at("large", {}, async (tab) => {
    await section(tab, "Latency");
    await drawAll(tab);
    const load = chart(tab, "load");
    const plain = await numbers(load);
    assert.ok(plain[0].some((head) => head.startsWith("latency p99")), plain[0].join());
    let before = await load.textContent();
    await load.getByRole("button", { name: "Service latency" }).click();
    await another(tab, "load", before);
    assert.equal(await load.getByRole("button", { name: "Service latency" }).getAttribute("aria-pressed"), "true");
    assert.ok((await numbers(load))[0].some((head) => head.startsWith("service latency p99")));
    assert.equal(await chart(tab, "percentiles").getByRole("button", { name: "Service latency" }).getAttribute("aria-pressed"), "true");
    await load.getByRole("button", { name: "From the due time" }).click();
    await until(tab, () => location.hash.includes("from=intended"));
    assert.ok((await numbers(load))[0].some((head) => head.startsWith("latency from the due time, p99")));
    await load.getByRole("button", { name: "Headline" }).click();
    await until(tab, () => !location.hash.includes("from="));
    before = await load.textContent();
    await load.getByRole("button", { name: "Multiple of the kernel floor" }).click();
    await another(tab, "load", before);
    const multiples = await numbers(load);
    const kernel = multiples.find((row) => row[0] === "kernel");
    const other = multiples.find((row) => row[0] === "nanomsg");
    assert.ok(kernel.some((text) => /^1(\.0+)?×/.test(text)), `the floor is once itself: ${kernel.join()}`);
    const multiple = parseFloat(other.find((text) => text.includes("×")));
    assert.ok(multiple > 2 && multiple < 10, other.join());
  });
});

test("the theme is chosen, kept in the address, and charts are drawn in it", async () => {
  await at("large", { colorScheme: "light" }, async (tab) => {
    await drawAll(tab);
    const ground = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const ink = () => chart(tab, "load").locator("svg text").first().evaluate((text) => text.getAttribute("fill"));
    const [light, dark] = [await ground(), await ink()];
    await tab.getByRole("radio", { name: "dark" }).check({ force: true });
    await until(tab, (light) => getComputedStyle(document.body).backgroundColor !== light, light);
    assert.match(await tab.evaluate(() => location.hash), /theme=dark/);
    await until(tab, (dark) => document.querySelector('figure[data-chart="load"] svg text').getAttribute("fill") !== dark, dark);
    await tab.reload();
    await tab.locator("h1").waitFor();
    assert.notEqual(await ground(), light, "the address keeps it");
  });
});

test("a system that is hidden is hidden in all charts, and comes back", async () => {
  await at("large", {}, async (tab) => {
    await drawAll(tab);
    const marks = () => chart(tab, "percentiles").locator(".plot svg path").count();
    const button = (id) => chart(tab, id).getByRole("list", { name: "Systems shown" }).getByRole("button", { name: "nng" });
    const all = await marks();
    await button("percentiles").click();
    await until(tab, () => document.querySelector('figure[data-chart="load"] [data-control="hide.nng"]').getAttribute("aria-pressed") === "false");
    assert.ok((await marks()) < all);
    await button("load").click();
    await until(tab, () => document.querySelector('figure[data-chart="percentiles"] [data-control="hide.nng"]').getAttribute("aria-pressed") === "true");
    assert.equal(await marks(), all);
  });
});

test("a slice that is chosen is the slice of every chart of its kind", async () => {
  await at("large", {}, async (tab) => {
    const latency = await section(tab, "Latency");
    await drawAll(tab);
    await latency.getByLabel("payload").first().selectOption("4KiB");
    await until(tab, () => ["percentiles", "distribution", "jitter"].every((id) => document.querySelector(`figure[data-chart="${id}"] figcaption`).textContent.includes("payload 4KiB")));
  });
});

for (const key of ["click", "Enter"]) {
  test(`a square of the map is a button: ${key} opens the point, and from it a cell's evidence`, async () => {
    await at("large", {}, async (tab) => {
      const map = (await section(tab, "Map of winners")).locator('figure[data-chart="map"]');
      const square = map.locator("tbody button").first();
      if (key === "click") await square.click();
      else {
        await square.focus();
        await tab.keyboard.press("Enter");
      }
      const card = tab.getByRole("dialog", { name: "Point of the map" });
      assert.deepEqual((await card.getByRole("rowheader").allTextContents()).map((text) => text.trim().split(" ")[0]).sort(), ["kernel", "nanomsg", "nng", "zeromq"]);
      await card.getByRole("button", { name: "Evidence of nanomsg" }).click();
      await tab.getByRole("dialog").getByText("Repeat these runs").waitFor();
      assert.match(await tab.getByRole("dialog").getByRole("heading", { level: 2 }).textContent(), /^nanomsg /);
    });
  });
}

test("what is unreliable is in the map and in the charts, marked", async () => {
  await at("large", { hash: "#slice.rate=2000&slice.payload=2KiB&slice.subscribers=4" }, async (tab) => {
    await drawAll(tab);
    const caption = await chart(tab, "load").locator("figcaption").textContent();
    assert.match(caption, /hollow|unreliable/i);
    const rows = await numbers(chart(tab, "load"));
    assert.ok(rows.some((row) => row[0] === "nng" && row.join(" ").includes("unreliable")), rows.map((row) => row.join()).join("\n"));
  });
});
