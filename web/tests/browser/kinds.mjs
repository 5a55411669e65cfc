// Pages of other kinds: what failed, nothing yet, two folders, a server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawAll, pageData, section, until } from "./browser.mjs";
import { at } from "./world.mjs";

test("what failed says why and what to do", async () => {
  await at("failures", {}, async (tab) => {
    const answer = await section(tab, "Answer");
    for (const words of ["6 missing", "4 failed", "10 unreliable", "The last record is incomplete"]) await answer.getByText(words, { exact: false }).first().waitFor();
    const cells = await section(tab, "All cells");
    await cells.getByText("the server is not installed").first().waitFor();
    await cells.getByLabel("Verdict").selectOption("failed");
    await cells.getByText("4 rows", { exact: true }).waitFor();
    await cells.getByRole("button", { name: /^Evidence: nats/ }).first().click();
    await tab.getByRole("dialog").getByText("connection refused").first().waitFor();
    await tab.keyboard.press("Escape");
    await cells.getByLabel("Verdict").selectOption("unreliable");
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
    await answer.getByText("No run yet").waitFor();
    await answer.getByText("32 missing").first().waitFor();
    assert.equal(await tab.locator("figure[data-chart]").count(), 0);
  });
});

test("a binding stands on the floor of its language, and says how it is made", async () => {
  await at("bindings", {}, async (tab) => {
    const bindings = await section(tab, "Bindings");
    await drawAll(tab);
    const { results: [{ cells }] } = await pageData(tab);
    const of = (system) => cells.find((cell) => cell.system === system).figures;
    for (const system of ["zeromq", "nanomsg"]) {
      const { message_time_ns: [whole], language_floor_ns: [floor], binding_ns: [own] } = of(system);
      assert.ok(floor > 0 && Math.abs(whole - floor - own) < whole / 100, `${system}: ${floor} and ${own} of ${whole}`);
    }
    assert.equal(of("nng").language_floor_ns, undefined);
    assert.equal(of("nanomsg").over_baseline[0], 1);
    assert.equal(of("nng").runtime_paused_share[0], 0.005);
    const figure = bindings.locator('figure[data-chart="bindings"]');
    assert.ok((await figure.locator("svg path").count()) > 4);
    await figure.getByText("the floor of the language", { exact: false }).first().waitFor();
    const table = (await section(tab, "Settings and build")).getByRole("table", { name: "How the bindings are made" });
    assert.match(await table.getByRole("row").filter({ hasText: "nng" }).textContent(), /^nng.*Tongue 4\.2.*async.*-O3$/);
    assert.equal(await table.getByRole("row").count(), 4);
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
    const shown = tab.getByLabel("Shown", { exact: true });
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
    await dialog.getByText(/^agent: publishers, pubmark \d/).waitFor();
    for (const words of ["Settings: tuned", "Deployment and limits", "Versions", "Workload"]) await dialog.getByText(words, { exact: true }).waitFor();
  });
});

test("where delivery is guaranteed, what became of each message comes before any latency", async () => {
  await at("server", {}, async (tab) => {
    const { results: [{ records: [run], findings }] } = await pageData(tab);
    // That others used the machine goes before all else.
    const place = findings.findIndex(({ about }) => about !== "machine");
    assert.equal(findings[place].about, "delivery");
    const answer = await section(tab, "Answer");
    assert.ok((await answer.locator("dl.findings dd").nth(place).textContent()).includes(`${run.acked} acknowledged messages`));
    for (const [name, words] of [["All cells", /^(acknowledged|acknowledged and lost|lost|duplicated)$/], ["All runs", /^(acked|acked lost|lost|duplicated)$/]]) {
      const heads = (await (await section(tab, name)).locator("thead th").allTextContents()).map((head) => head.replace(/[^a-z0-9 ]/gi, "").trim());
      const delivery = heads.findIndex((head) => words.test(head));
      assert.ok(delivery > 0 && delivery + 4 <= heads.indexOf("latency p50"), heads.join());
      assert.ok(heads.slice(delivery, delivery + 4).every((head) => words.test(head)), heads.join());
    }
  });
});

/** A figure's text in a cell's evidence, and whether it is struck through. */
async function figureOf(tab, dialog, name) {
  const row = dialog.getByRole("row").filter({ has: tab.getByRole("rowheader", { name, exact: true }) }).first();
  return { text: await row.getByRole("cell").first().textContent(), struck: (await row.locator("s").count()) > 0 };
}

test("a reason takes away the figures that it touches, and the page says which", async () => {
  await at("partly", {}, async (tab) => {
    const answer = await section(tab, "Answer");
    await answer.getByRole("button", { name: "8 unreliable" }).waitFor();
    const cells = await section(tab, "All cells");
    await cells.getByLabel("Verdict").selectOption("unreliable");
    await cells.getByText("2 rows", { exact: true }).waitFor();
    await cells.getByRole("button", { name: /^Evidence: nanomsg/ }).first().click();
    const dialog = tab.getByRole("dialog");
    await dialog.getByText("Unreliable: p99; the other figures are ok.").waitFor();
    assert.equal((await figureOf(tab, dialog, "latency p50")).struck, false);
    assert.equal((await figureOf(tab, dialog, "latency p99")).struck, true);
    assert.equal((await figureOf(tab, dialog, "delivered")).struck, false);
  });
});

test("a throughput stands with its share; a lower bound says so; what did other work is not comparable", async () => {
  await at("partly", {}, async (tab) => {
    const answer = await section(tab, "Answer");
    const said = await answer.locator("dl.findings").textContent();
    assert.match(said, /the shares delivered differ/);
    assert.match(said, /zeromq [^;]*10\.\d? ?%? ?/);
    const { results: [result] } = await pageData(tab);
    const max = result.cells.filter((cell) => cell.unthrottled);
    assert.deepEqual(max.filter((cell) => cell.signs?.delivered_per_s === "≥").map((cell) => cell.system), ["nng", "nng"]);
    const few = max.filter((cell) => cell.axes.payload === 64);
    assert.ok(few.every((cell) => cell.word !== "winner"), few.map((cell) => `${cell.system} ${cell.word}`).join());
    assert.equal(few.find((cell) => cell.system === "zeromq").word, "not comparable");
    assert.ok(max.every((cell) => cell.system !== "nng" || cell.word !== "behind"), "a lower bound is never behind");
    const cells = await section(tab, "All cells");
    await cells.getByLabel("Find").fill("nng rate=max");
    await cells.getByText("2 rows", { exact: true }).waitFor();
    assert.ok((await cells.getByRole("row").filter({ hasText: "nng" }).first().textContent()).includes("≥ "));
  });
});

test("a run's evidence shows the three latencies, the lags, how it was paced, and what each reason touches", async () => {
  await at("partly", {}, async (tab) => {
    const { results: [{ records, cells }] } = await pageData(tab);
    const index = records.findIndex((run) => run.partly && cells[run.cell].system === "nng");
    await tab.evaluate((hash) => (location.hash = hash), `run=${index}`);
    const dialog = tab.getByRole("dialog");
    await dialog.getByText("Unreliable: p99; the other figures are ok.").waitFor();
    for (const kind of ["latency, less the generator delay", "latency from the due time", "service latency, from the actual send time", "generator delay: the load generator's part of it"]) {
      await dialog.getByRole("rowheader", { name: kind, exact: true }).waitFor();
    }
    const paced = await dialog.locator("p.pacing").textContent();
    for (const words of ["100 µs before their due times", "0.0900 of a budget of 0.200 processors", "kept awake"]) assert.ok(paced.includes(words), paced);
  });
});

test("a folder of pubmark 0.1 says that its latencies contain the timer, and shows no headline for them", async () => {
  await at("old", {}, async (tab) => {
    const answer = await section(tab, "Answer");
    await answer.getByText("latencies contain the load generator's own timer").waitFor();
    await tab.evaluate((hash) => (location.hash = hash), "run=0");
    const dialog = tab.getByRole("dialog");
    await dialog.getByText("Recorded by pubmark 0.1").waitFor();
    assert.equal(await dialog.getByRole("rowheader", { name: "latency, less the generator delay" }).count(), 0);
    await dialog.getByRole("rowheader", { name: "latency from the due time", exact: true }).waitFor();
  });
});
