// What holds of every page, whatever is in it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, drawAll, pageData, section, until } from "./browser.mjs";
import { at, tally, verdict } from "./world.mjs";

const ALL = ["large", "failures", "partly", "old", "empty", "two", "hostile", "capacity", "real", "server"];

/** Pages that between them have everything a phone and paper may show. */
const PHONES = ["large", "failures", "partly", "two", "hostile", "capacity", "server"];
const PAPER = ["large", "failures", "two", "capacity"];

/** Sections that a page has; those in between depend on what was measured. */
const SECTIONS = {
  large: ["Answer", "Latency", "Throughput", "Map of winners", "Cost", "Against published figures", "All cells", "Claims", "All runs", "Settings and build", "Downloads"],
  failures: ["Answer", "Latency", "Throughput", "Map of winners", "Cost", "All cells", "All runs", "Settings and build", "Downloads"],
  partly: ["Answer", "Latency", "Throughput", "Map of winners", "Cost", "All cells", "All runs", "Settings and build", "Downloads"],
  old: ["Answer", "Latency", "Throughput", "Cost", "All cells", "All runs", "Settings and build", "Downloads"],
  empty: ["Answer", "All cells", "Settings and build", "Downloads"],
  two: ["Answer", "Comparison", "Latency", "Throughput", "Map of winners", "Cost", "All cells", "All runs", "Settings and build", "Downloads"],
  hostile: ["Answer", "Latency", "Throughput", "Map of winners", "Cost", "All cells", "Claims", "All runs", "Settings and build", "Downloads"],
  capacity: ["Answer", "Capacity", "Latency", "Throughput", "Cost", "All cells", "All runs", "Settings and build", "Downloads"],
  real: ["Answer", "Latency", "Throughput", "Map of winners", "Cost", "All cells", "All runs", "Settings and build", "Downloads"],
  server: ["Answer", "Latency", "Throughput", "Cost", "All cells", "All runs", "Settings and build", "Downloads"],
};

/** The number in `12 rows` or `1 to 100 of 2,360 rows`. */
const rowsOf = (status) => Number(/([\d,]+) rows?$/.exec(status)[1].replaceAll(",", ""));

const links = (tab) => tab.getByRole("navigation", { name: "Sections" }).getByRole("link").allTextContents();

for (const name of ALL) {
  test(`${name}: the page has its sections, draws its charts and says nothing to the console`, async () => {
    await at(name, {}, async (tab, { records }) => {
      const charts = await drawAll(tab);
      assert.deepEqual(await links(tab), SECTIONS[name]);
      const { results } = await pageData(tab);
      if (name !== "hostile") assert.equal(await tab.title(), `${results[0].title} · pubmark`);
      assert.equal(await tab.locator(".error").count(), 0, "a part could not be drawn");
      if (records.length > 0) assert.ok(charts.includes("percentiles") && charts.includes("delivered") && charts.includes("cpu"), charts.join());
      for (const chart of charts.filter((chart) => chart !== "map")) {
        const figure = tab.locator(`figure[data-chart="${chart}"]`).first();
        // Where systems of the point are not ranked, it says why.
        if (chart.startsWith("distance") && (await figure.locator(".nothing").count()) > 0) continue;
        if (name !== "failures") assert.ok((await figure.locator(".plot svg path").count()) > 3, `${chart} has no marks`);
        assert.notEqual((await figure.locator("figcaption").textContent()).trim(), "", `${chart} has no caption`);
      }
      const cells = await section(tab, "All cells");
      assert.equal(rowsOf(await cells.getByRole("status").last().textContent()), results[0].cells.length);
      if (records.length === 0) return;
      const runs = await section(tab, "All runs");
      assert.equal(rowsOf(await runs.getByRole("status").last().textContent()), records.length);
    });
  });

  test(`${name}: the opening counts what the records hold`, async () => {
    await at(name, {}, async (tab, { records }) => {
      const answer = await section(tab, "Answer");
      const counts = tally(records.map(verdict));
      for (const [words, shownAs] of [[["valid"], "ok"], [["partly", "invalid"], "unreliable"], [["failed"], "failed"]]) {
        const button = answer.getByRole("button", { name: new RegExp(`^[\\d,]+ ${shownAs}$`) });
        const shown = (await button.count()) === 0 ? 0 : Number((await button.textContent()).replace(/\D/g, ""));
        assert.equal(shown, words.reduce((sum, word) => sum + (counts[word] ?? 0), 0), shownAs);
      }
      const reasons = tally(records.flatMap((record) => [...new Set(record.verdict.reasons.map(({ reason }) => reason))]));
      const listed = await answer.locator("ul.reasons > li").allTextContents();
      assert.deepEqual(Object.fromEntries(listed.map((text) => [text.split(" ")[0], parseInt(text.split(" ")[1].replaceAll(",", ""), 10)])), reasons);
    });
  });

  for (const colorScheme of PHONES.includes(name) ? ["light", "dark"] : []) {
    test(`${name}, ${colorScheme}: a phone needs no sideways scroll, and nobody is shut out`, async () => {
      await at(name, { viewport: { width: 390, height: 844 }, colorScheme }, async (tab, { records }) => {
        await drawAll(tab);
        const fits = async (where) => {
          const [wide, inner, who] = await tab.evaluate(() => {
            // Named are those that stick out and are not within a box that scrolls.
            const scrolls = (element) => element !== null && (["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
            const out = [...document.querySelectorAll("main *")].filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !scrolls(element.parentElement));
            return [document.scrollingElement.scrollWidth, innerWidth, out.slice(-3).map((element) => element.outerHTML.slice(0, 200))];
          });
          assert.ok(wide <= inner, `${where}: ${wide} px in ${inner} px, by ${who.join(" and ")}`);
        };
        await fits("the page");
        await accessible(tab, "the page");
        for (const hash of records.length === 0 ? ["cell=0"] : ["cell=0", `run=${records.length - 1}`]) {
          await tab.evaluate((hash) => (location.hash = hash), hash);
          const dialog = tab.getByRole("dialog");
          await dialog.waitFor();
          await until(tab, () => document.querySelector("dialog[open] [aria-busy]") === null);
          await fits(hash);
          await accessible(tab, hash);
          await dialog.getByRole("button", { name: "Close" }).first().click();
          await dialog.waitFor({ state: "hidden" });
        }
      });
    });
  }

  if (PAPER.includes(name)) test(`${name}: on paper every chart is drawn, light, and no part is folded`, async () => {
    await at(name, { colorScheme: "dark" }, async (tab) => {
      await tab.evaluate(() =>
        addEventListener("beforeprint", () =>
          queueMicrotask(() => {
            const figures = [...document.querySelectorAll("main figure[data-chart]")];
            window.printed = { theme: document.documentElement.dataset.theme, charts: figures.length, drawn: figures.filter((figure) => figure.dataset.drawn === "1").length, waiting: document.querySelectorAll("main > section.waiting").length };
          })));
      const pdf = await tab.pdf();
      assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
      const { theme, charts, drawn, waiting } = await tab.evaluate(() => window.printed);
      assert.deepEqual([theme, drawn, waiting], ["light", charts, 0]);
      await until(tab, () => document.documentElement.dataset.theme !== "light");
      await tab.emulateMedia({ media: "print" });
      assert.equal(await tab.getByRole("navigation", { name: "Sections" }).isVisible(), false, "controls are not printed");
    });
  });
}
