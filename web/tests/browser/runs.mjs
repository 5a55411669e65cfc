// The table of all runs, and the evidence that its rows open.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pageData, section, until } from "./browser.mjs";
import { at, csv, isUnreliable } from "./world.mjs";
import { downloaded } from "./browser.mjs";

const status = (runs) => runs.getByRole("status").last();
const count = (number) => (number === 1 ? "1 row" : `${number.toLocaleString("en")} rows`);

test("runs are filtered by system, verdict, reason and words, and what is left can be downloaded", async () => {
  await at("large", {}, async (tab, { records }) => {
    const runs = await section(tab, "All runs");
    const expect = async (fits) => {
      const left = records.filter(fits).length;
      assert.ok(left > 0 && left < records.length);
      await status(runs).filter({ hasText: new RegExp(`(^|of )${count(left)}$`) }).waitFor();
      return left;
    };
    const nng = (record) => record.system === "nng";
    await runs.getByLabel("System").selectOption("nng");
    await expect(nng);
    await runs.getByLabel("Verdict").selectOption("unreliable");
    const left = await expect((record) => nng(record) && isUnreliable(record));
    const rows = csv((await downloaded(tab, () => runs.getByRole("button", { name: /as CSV$/ }).click())).text);
    assert.equal(rows.length, left);
    assert.ok(rows.every((row) => row.system === "nng" && ["partly", "invalid"].includes(row.verdict) && row.reasons.includes("messages-lost")));
    await runs.getByLabel("System").selectOption("");
    await runs.getByLabel("Reason").selectOption("duplicates");
    await expect((record) => record.verdict.reasons.some(({ reason }) => reason === "duplicates"));
    await runs.getByLabel("Reason").selectOption("");
    await runs.getByLabel("Verdict").selectOption("");
    await runs.getByLabel("Find").fill("zeromq 2KiB");
    await expect((record) => record.system === "zeromq" && record.cell.payload === 2048);
    await runs.getByLabel("Find").fill("there is no such run");
    await runs.getByText("nothing fits").waitFor();
  });
});

test("runs are sorted by any column, both ways, over all pages", async () => {
  await at("large", {}, async (tab) => {
    const { results: [{ records, cells }] } = await pageData(tab);
    const runs = await section(tab, "All runs");
    const shown = async () => (await runs.locator("[data-run]").evaluateAll((all) => all.map((one) => Number(one.dataset.run)))).map((index) => records[index]);
    const press = async (name, sorted) => {
      await runs.getByRole("columnheader", { name }).getByRole("button").click();
      await runs.locator(`th[aria-sort="${sorted}"]`).filter({ hasText: name }).waitFor();
      return shown();
    };
    const values = records.map((run) => run.p99).filter((value) => value !== null);
    const up = (await press("latency p99", "ascending")).map((run) => run.p99);
    assert.equal(up[0], Math.min(...values));
    assert.deepEqual(up, up.toSorted((a, b) => a - b));
    const down = (await press("latency p99", "descending")).map((run) => run.p99);
    assert.equal(down[0], Math.max(...values));
    assert.deepEqual(down, down.toSorted((a, b) => b - a));
    const names = (await press("system", "ascending")).map((run) => cells[run.cell].system);
    assert.deepEqual(names, names.toSorted());
    assert.equal(names.length, 100);
    await runs.getByRole("button", { name: "Next", exact: true }).click();
    await status(runs).filter({ hasText: "101 to 200 of" }).waitFor();
    await runs.getByRole("button", { name: "Last", exact: true }).click();
    await status(runs).filter({ hasText: `to ${records.length.toLocaleString("en")} of ${count(records.length)}` }).waitFor();
  });
});

for (const [way, press] of [
  ["a click", (tab, button) => button.click()],
  ["Enter", async (tab, button) => {
    await button.focus();
    await tab.keyboard.press("Enter");
  }],
]) {
  test(`${way} opens a run's evidence, Escape closes it, and the focus returns`, async () => {
    await at("large", {}, async (tab, { records }) => {
      const runs = await section(tab, "All runs");
      await runs.getByLabel("Verdict").selectOption("unreliable");
      await status(runs).filter({ hasText: `rows` }).waitFor();
      const button = runs.locator("[data-run]").nth(3);
      const index = Number(await button.getAttribute("data-run"));
      await press(tab, button);
      const dialog = tab.getByRole("dialog");
      await dialog.getByText("Why it is unreliable").waitFor();
      const { results: [{ records: rows, cells }] } = await pageData(tab);
      const own = records.find((record) => record.repeat === rows[index].repeat && JSON.stringify(record.cell) === JSON.stringify(cells[rows[index].cell].axes)
        || (record.repeat === rows[index].repeat && Object.entries(cells[rows[index].cell].axes).every(([axis, value]) => record.cell[axis] === value)));
      for (const { reason, evidence } of own.verdict.reasons) await dialog.getByText(`${reason}: ${evidence}`).first().waitFor();
      assert.ok((await tab.evaluate(() => location.hash)).includes(`run=${index}`), "the address names the run");
      assert.equal(await dialog.evaluate((element) => element.contains(document.activeElement)), true, "the focus is in the dialog");
      await tab.keyboard.press("Escape");
      await dialog.waitFor({ state: "hidden" });
      await until(tab, (index) => document.activeElement?.getAttribute("data-run") === index, String(index));
    });
  });
}

test("a row opens its run, and from a run one gets to its cell and its neighbours", async () => {
  await at("large", {}, async (tab) => {
    const runs = await section(tab, "All runs");
    await runs.getByRole("row").nth(5).getByRole("cell").last().click();
    const dialog = tab.getByRole("dialog");
    const title = await dialog.getByRole("heading", { level: 2 }).textContent();
    await dialog.getByRole("button", { name: "Next run" }).click();
    await until(tab, (title) => document.querySelector("dialog[open] h2").textContent !== title, title);
    await dialog.getByRole("button", { name: /all runs of this cell/ }).click();
    await dialog.getByText("Repeat these runs").waitFor();
    assert.equal(await dialog.getByRole("heading", { level: 2 }).textContent(), title.replace(/, run \d+$/, ""));
  });
});

test("an address leads to a run or a cell; one that leads nowhere opens nothing", async () => {
  const { results: [result] } = await new Promise((resolve, reject) => at("large", {}, async (tab) => resolve(await pageData(tab))).catch(reject));
  for (const [hash, title] of [["#run=17", `${result.cells[result.records[17].cell].label}, run ${result.records[17].repeat}`], ["#cell=3", result.cells[3].label]]) {
    await at("large", { hash }, async (tab) => {
      const dialog = tab.getByRole("dialog");
      await dialog.waitFor();
      assert.equal(await dialog.getByRole("heading", { level: 2 }).textContent(), title);
    });
  }
  for (const hash of ["#run=999999", "#run=-1", "#cell=__proto__", "#run=%3Cscript%3E", "#%E0%A4%A", "#result=7&theme=pink&runs.page=1e9&runs.sort=nothing"]) {
    await at("large", { hash }, async (tab) => {
      await section(tab, "All runs");
      assert.equal(await tab.getByRole("dialog").count(), 0, hash);
    });
  }
});

test("the command that repeats a cell is copied", async () => {
  await at("large", { hash: "#cell=3", permissions: ["clipboard-read", "clipboard-write"] }, async (tab) => {
    const { results: [result] } = await pageData(tab);
    const dialog = tab.getByRole("dialog");
    await dialog.getByRole("button", { name: "Copy", exact: true }).click();
    await dialog.getByText("copied", { exact: true }).waitFor();
    assert.equal(await tab.evaluate(() => navigator.clipboard.readText()), result.cells[3].command);
    assert.match(result.cells[3].command, /^pubmark run /);
  });
});
