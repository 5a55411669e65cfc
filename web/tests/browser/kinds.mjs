// Pages of other kinds: what failed, nothing yet, two folders, a server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawAll, pageData, section, until } from "./browser.mjs";
import { at } from "./world.mjs";

test("what failed says why and what to do", async () => {
  await at("failures", {}, async (tab) => {
    const answer = await section(tab, "Answer");
    for (const words of ["6 missing", "4 failed", "10 invalid", "The last record breaks off"]) await answer.getByText(words, { exact: false }).first().waitFor();
    const cells = await section(tab, "All cells");
    await cells.getByText("the server is not installed").first().waitFor();
    await cells.getByLabel("Verdict").selectOption("failed");
    await cells.getByText("4 rows", { exact: true }).waitFor();
    await cells.getByRole("button", { name: /^Evidence: nats/ }).first().click();
    await tab.getByRole("dialog").getByText("connection refused").first().waitFor();
    await tab.keyboard.press("Escape");
    await cells.getByLabel("Verdict").selectOption("invalid");
    await cells.getByRole("button", { name: /^Evidence: redis/ }).first().click();
    const dialog = tab.getByRole("dialog");
    await dialog.getByText("the server ended with signal 9 after 0.4 s").first().waitFor();
    const { reasons } = await pageData(tab);
    await dialog.getByText(reasons["server-died"].advice).first().waitFor();
  });
});

test("a study without a record says so", async () => {
  await at("empty", {}, async (tab) => {
    const answer = await section(tab, "Answer");
    await answer.getByText("No run has been made yet").waitFor();
    await answer.getByText("32 missing").first().waitFor();
    assert.equal(await tab.locator("figure[data-chart]").count(), 0);
  });
});

test("two folders: what else was different, then the changes, the largest first", async () => {
  await at("two", {}, async (tab) => {
    const comparison = await section(tab, "Comparison");
    await drawAll(tab);
    const kernel = comparison.getByRole("row").filter({ hasText: "6.1.0-before" });
    assert.ok((await kernel.textContent()).includes("6.1.0-after"));
    const { comparison: { same } } = await pageData(tab);
    assert.equal(same.length, 16);
    const changes = same.flatMap(({ axes, changes }) => changes.filter(({ column }) => column === "latency_p50_ns").map((change) => ({ axes, change })));
    for (const { axes, change } of changes) {
      // The second folder has no run of one cell: nothing can be said there.
      const gone = axes.system === "nanomsg" && axes.payload === 1024 && axes.subscribers === 2;
      assert.equal(change.outcome === "undecided", gone, JSON.stringify(axes));
      if (axes.system !== "nng") continue;
      assert.equal(change.outcome, "worse");
      assert.ok(Math.abs(change.ratio[0] - 1.5) < 0.05, `half as long again: ${change.ratio}`);
    }
    const table = comparison.getByRole("table", { name: "Changes by size" });
    assert.match(await table.getByRole("row").nth(1).textContent(), /^nng .*worse.*1\.[45]\d×/);
    await comparison.getByLabel("only differences").check();
    await until(tab, () => !document.querySelector("#comparison table[aria-labelledby] tbody").textContent.includes("no difference"));
    assert.ok((await comparison.locator('figure[data-chart="forest"] svg path, figure[data-chart="forest"] svg line').count()) > 3);
  });
});

test("of two folders either is shown", async () => {
  await at("two", {}, async (tab) => {
    const shown = tab.getByLabel("Shown");
    assert.deepEqual(await shown.locator("option").allTextContents(), ["before", "after"]);
    await shown.selectOption({ label: "after" });
    await until(tab, () => document.querySelector("header").textContent.includes("after") && location.hash.includes("result=1"));
    const runs = await section(tab, "All runs");
    const { results } = await pageData(tab);
    await runs.getByText(new RegExp(`of ${results[1].records.length} rows$`)).waitFor();
  });
});

test("a server that was stopped: the run's evidence shows when, and the figures over time", async () => {
  await at("server", { hash: "#run=0" }, async (tab) => {
    const dialog = tab.getByRole("dialog");
    await dialog.getByText("Over time").first().waitFor();
    await dialog.locator("figure[data-chart]").first().scrollIntoViewIfNeeded();
    await dialog.locator('figure[data-chart][data-drawn="1"]').first().waitFor();
    assert.ok((await dialog.locator("figure[data-chart] svg path").count()) > 5);
    await dialog.getByText(/stop(ped)? server|server.*stop/i).first().waitFor();
    for (const words of ["Deployment and limits", "Versions", "Workload"]) await dialog.getByText(words, { exact: true }).waitFor();
  });
});
