// A page whose every string is hostile does nothing, says what the strings
// are, and can be used.
import assert from "node:assert/strict";
import { test } from "node:test";
import { IMAGE, SCRIPT } from "../fixtures/hostile.mjs";
import { downloaded, drawAll, frame, pageData, section, until } from "./browser.mjs";
import { at, csv } from "./world.mjs";

/** Nothing ran, nothing was made that a string asked for. */
async function harmless(tab) {
  const found = await tab.evaluate(() => ({
    hacked: window.hacked ?? null,
    scripts: document.scripts.length,
    strange: document.querySelectorAll("img, iframe, object, embed, base, form, link[rel=stylesheet], meta[http-equiv=refresh]").length,
    handlers: [...document.querySelectorAll("*")].filter((element) => [...element.attributes].some(({ name }) => name.startsWith("on"))).length,
    polluted: Object.keys(Object.prototype).length + ({}.toString === Object.prototype.toString ? 0 : 1),
    unseen: /[\u0000\u202e\u2066-\u2069\u001b\ufeff]/.test(document.body.innerText),
  }));
  assert.deepEqual(found, { hacked: null, scripts: 3, strange: 0, handlers: 0, polluted: 0, unseen: false });
}

test("hostile strings are shown as text", async () => {
  await at("hostile", {}, async (tab) => {
    await drawAll(tab);
    assert.equal(await tab.locator("h1").textContent(), `${SCRIPT} ${IMAGE} title`);
    assert.ok((await tab.locator("main .question").textContent()).includes(SCRIPT));
    await harmless(tab);
    for (const chart of await tab.locator("figure[data-chart] details.data:visible > summary").all()) await chart.click();
    await harmless(tab);
  });
});

test("the evidence of hostile cells and runs does nothing", async () => {
  await at("hostile", {}, async (tab) => {
    const { results: [result] } = await pageData(tab);
    for (const [key, all] of [["cell", result.cells], ["run", result.records]]) {
      for (let index = 0; index < all.length; index += 1) {
        await tab.evaluate((hash) => (location.hash = hash), `${key}=${index}`);
        await until(tab, () => document.querySelector("dialog[open]") !== null && document.querySelector("dialog[open] [aria-busy]") === null);
        assert.equal(await tab.locator("dialog[open]").getByText("cannot be read").count(), 0, `${key} ${index}`);
      }
      await harmless(tab);
      const shown = await tab.locator("dialog[open]").innerText();
      assert.ok(shown.length < 400_000, `${shown.length} characters: long strings are cut`);
    }
    const text = await tab.locator("dialog[open]").innerText();
    assert.ok(text.includes(SCRIPT) && text.includes(IMAGE), "keys and values stand there literally");
    await tab.keyboard.press("Escape");
    await tab.locator("dialog[open]").waitFor({ state: "detached" }).catch(() => {});
    assert.equal(await tab.locator("dialog[open]").count(), 0);
  });
});

/** Marks the first visible list that is not among the `done`, and says its name; null where there is none. */
const markNext = (tab, done) =>
  tab.evaluate((done) => {
    for (const marked of document.querySelectorAll("select[data-next]")) marked.removeAttribute("data-next");
    for (const list of document.querySelectorAll("main select")) {
      const chart = list.closest("figure[data-chart]")?.dataset.chart;
      const name = [chart, list.dataset.control ?? list.labels[0]?.textContent].filter(Boolean).join(": ");
      if (!list.checkVisibility() || done.includes(name)) continue;
      list.setAttribute("data-next", "");
      return name;
    }
    return null;
  }, done);

test("a hostile page can be used: it is filtered, sorted, cut and switched", async () => {
  await at("hostile", {}, async (tab) => {
    await drawAll(tab);
    const runs = await section(tab, "All runs");
    await runs.getByLabel("System").selectOption("nng");
    await runs.getByText(/^8 rows$/).waitFor();
    await runs.getByRole("columnheader", { name: "latency p50" }).getByRole("button").click();
    // A choice can bring further lists and replace the options of others, so each is looked for anew.
    const chosen = new Set();
    for (let next; (next = await markNext(tab, [...chosen])) !== null; chosen.add(next)) {
      const list = tab.locator("select[data-next]");
      await list.selectOption({ index: (await list.locator("option").count()) - 1 });
      await frame(tab);
    }
    assert.ok(chosen.has("fit.1.is"), "a list that another one brings was chosen from");
    const [name, pressed] = ["Service latency", "aria-pressed"];
    await tab.getByRole("button", { name }).first().click();
    await until(tab, ([name, pressed]) => [...document.querySelectorAll("button")].some((button) => button.textContent === name && button.getAttribute(pressed) === "true"), [name, pressed]);
    await harmless(tab);
  });
});

test("no field of a CSV file is a formula, and no file's name leads anywhere", async () => {
  await at("hostile", {}, async (tab) => {
    await drawAll(tab);
    const downloads = await section(tab, "Downloads");
    const files = [await downloaded(tab, () => downloads.getByRole("button", { name: "runs.csv" }).click())];
    const figure = tab.locator('figure[data-chart="load"]').first();
    await figure.locator("details.menu > summary").click();
    files.push(await downloaded(tab, () => figure.getByRole("button", { name: "CSV" }).click()));
    for (const { name, text } of files) {
      assert.match(name, /^[A-Za-z0-9][A-Za-z0-9._-]*\.csv$/);
      for (const row of csv(text)) for (const field of Object.values(row)) assert.ok(!/^[=+@\t\r]|^-(?![\d.])/.test(field ?? ""), JSON.stringify(field));
    }
  });
});
