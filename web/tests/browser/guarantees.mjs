// What acknowledgements are worth: the card, and the price of durability.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, chart, drawAll, numbers, pageData, section, until } from "./browser.mjs";
import { at } from "./world.mjs";

test("the study of power cuts shows first what each setting costs and what it loses", async () => {
  await at("power", {}, async (tab) => {
    const sections = await tab.getByRole("navigation", { name: "Sections" }).getByRole("link").allTextContents();
    assert.deepEqual(sections.slice(0, 2), ["Answer", "Price of durability"]);
    await section(tab, "Price of durability");
    await drawAll(tab);
    const figure = chart(tab, "price");
    const { results: [{ cells }] } = await pageData(tab);
    const measured = (rate) => cells.filter(({ axes, figures }) => axes.rate === rate && figures.acked_lost_ratio);
    const price = async () => (await numbers(figure)).slice(1);
    const rows = await price();
    assert.equal(rows.length, cells.filter(({ axes, status }) => axes.rate === 50 && status !== "skipped").length);
    for (const { system, axes, figures } of measured(50)) {
      const row = rows.find((row) => row[0] === system && row[1] === axes.part);
      const share = parseFloat(row.at(-3));
      assert.ok(Math.abs(share - figures.acked_lost_ratio[0] * 100) < 0.6, `${system}, ${axes.part}: ${row.join(" | ")}`);
    }
    assert.ok((await figure.locator(".plot svg path").count()) >= measured(50).length, "a mark for each system and setting");
    await figure.getByText("jetstream-always", { exact: true }).first().waitFor();
    assert.match(await figure.getByRole("heading").first().textContent(), /^time to acknowledgement p50 against acknowledged messages lost$/);
    await figure.getByLabel("figure").selectOption("acked");
    await until(tab, () => /^acknowledged against/.test(document.querySelector('figure[data-chart="price"] h3').textContent));
    assert.ok((await price()).every((row) => !/ms|µs/.test(row.slice(4).join())), "counts in place of times");
    await accessible(tab, '[data-chart="price"]');
  });
});

test("the card has a row for each event, and what holds of all messages", async () => {
  await at("card", {}, async (tab) => {
    const part = await section(tab, "Guarantee card");
    const rows = await part.getByRole("table").first().getByRole("row").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
    assert.deepEqual(rows.slice(1).map((row) => row[0]), ["undisturbed", "killed", "frozen", "cut off", "power cut", "full disk", "slow subscribers", "full queue"]);
    const slow = rows.find((row) => row[0] === "slow subscribers");
    assert.deepEqual(slow.slice(1, 9), ["1", "1", "–", "–", "0", "180", "180", "0"]);
    const whole = await part.getByRole("table", { name: "Order, duplicates and redelivery in all runs" }).getByRole("row").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
    assert.deepEqual(whole[2].slice(0, 5), ["arrived again", "1", "3", "4,860", "540"]);
    assert.match(whole.find((row) => row[0] === "out of order across publishers").at(-1), /^not measured: /);
    assert.equal(await tab.locator('figure[data-chart="price"]').count(), 0, "its parts are events, not settings");
  });
});
