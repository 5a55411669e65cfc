// The first screen: a card for each figure, and how far the runs can be trusted.
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { test } from "node:test";
import { accessible, pageData, until } from "./browser.mjs";
import { at, browser, fixture, tally, verdict } from "./world.mjs";

const HASH = "#slice.payload=1KiB&slice.subscribers=2&slice.rate=2000";

const card = (tab, name) => tab.getByRole("article", { name, exact: true });

/** The rows of a card: name, value, length of the bar as a share of its track, and whether it is hollow. */
const rowsOf = (found) => found.locator("table.bars tbody tr").evaluateAll((rows) => rows.map((row) => {
  const width = (name) => row.querySelector(name).getBoundingClientRect().width;
  const whisker = row.querySelector(".whisker");
  return {
    name: row.querySelector("th").textContent, value: row.querySelector(".number").textContent, bar: width(".fill") / width(".track"), track: width(".track"),
    isHollow: row.classList.contains("unreliable"), isBest: row.classList.contains("best"), whisker: whisker === null ? null : width(".whisker") / width(".track"),
  };
}));

/** Two digits, never above the value. */
const down = (value) => {
  const digits = 1 - Math.floor(Math.log10(value));
  return (Math.floor(value * 10 ** digits + 1e-9) / 10 ** digits).toFixed(Math.max(0, digits));
};

/** The sentence that the data of a point asks for. */
function expected({ kind, systems }, lead, [is, may, tie], place) {
  const or = (joint) => (systems.length > 2 ? `${systems.slice(0, -1).join(", ")} ${joint} ${systems.at(-1)}` : systems.join(` ${joint} `));
  if (kind === "winner") return `${systems[0]} ${is}${place}, by at least ${lead >= 2 ? `${down(lead)}×` : `${down((lead - 1) * 100)} %`}`;
  if (kind === "tie") return `${or("and")} ${tie}${place}`;
  if (kind === "open") return `${or("or")} ${may}${place}`;
  assert.equal(kind, "unranked");
  return `not comparable${place}: each dropped a different share`;
}

const CARDS = [
  ["Latency", "latency_p50_ns", ["is fastest", "may be fastest", "tie for fastest"], 2_000],
  ["Throughput", "delivered_per_s", ["delivers most", "may deliver most", "tie for most delivered"], "max"],
  ["CPU", "cpu_ns_per_message", ["uses least CPU", "may use least CPU", "tie for least CPU"], 2_000],
];

test("each card says whom the data ranks first, over bars as long as the figures", async () => {
  await at("large", { hash: HASH }, async (tab) => {
    const { results: [{ cells, points }] } = await pageData(tab);
    for (const [name, key, words, rate] of CARDS) {
      const point = points.find(({ axes }) => axes.payload === 1024 && axes.subscribers === 2 && axes.rate === rate);
      const shown = card(tab, name);
      assert.equal(await shown.locator(".answer").textContent(), expected(point.ranks[key], point.leads?.[key], words, rate === "max" ? "" : " at rate 2000"), name);
      const rows = await rowsOf(shown);
      const own = new Map(point.cells.map((index) => [cells[index].system, cells[index]]));
      assert.deepEqual(rows.map((row) => row.name).sort(), [...own.keys()].sort());
      assert.equal(rows.at(-1).name, "kernel", "the reference is last");
      const value = (row) => own.get(row.name).figures[key];
      const longest = rows.reduce((a, b) => (value(a)[0] > value(b)[0] ? a : b));
      for (const row of rows) {
        const [middle, lo, hi] = value(row);
        assert.ok(Math.abs(row.bar / longest.bar - middle / value(longest)[0]) < 0.02, `${name}: ${row.name} ${row.bar} of ${longest.bar}`);
        const scale = longest.bar / value(longest)[0];
        if (row.whisker !== null && hi * scale <= 1) assert.ok(Math.abs(row.whisker - (hi - lo) * scale) < 0.03, `${name}: whisker of ${row.name}`);
        const digits = Number(row.value.replace(/[^\d.]/g, ""));
        assert.ok([1, 1e3, 1e6, 1e9].some((unit) => Math.abs(digits * unit - middle) <= middle * 0.006), `${name}: ${row.value} for ${middle}`);
      }
      const ranked = rows.slice(0, -1).map(value);
      const better = key === "delivered_per_s" ? (a, b) => a[0] >= b[0] : (a, b) => a[0] <= b[0];
      if (point.ranks[key].systems.length < 2) for (let row = 1; row < ranked.length; row += 1) assert.ok(better(ranked[row - 1], ranked[row]), `${name}: the best first`);
      assert.deepEqual(rows.filter(({ isBest }) => isBest).map((row) => row.name), point.ranks[key].kind === "winner" ? point.ranks[key].systems : []);
    }
  });
});

test("a line of a card counts the points that each system wins", async () => {
  await at("large", {}, async (tab) => {
    const { results: [{ points }] } = await pageData(tab);
    const ranks = points.filter(({ unthrottled, ranks }) => !unthrottled && ranks.latency_p50_ns && ranks.latency_p50_ns.kind !== "alone").map(({ ranks }) => ranks.latency_p50_ns);
    const counts = tally(ranks.map(({ kind, systems }) => (kind === "winner" ? systems[0] : kind)));
    const line = await card(tab, "Latency").locator(".counts-line").textContent();
    assert.ok(line.startsWith(`Best at ${ranks.length} points: `), line);
    const said = Object.fromEntries(line.split(": ")[1].split(", ").map((part) => [part.replace(/ \d+$/, ""), Number(/\d+$/.exec(part)[0])]));
    assert.deepEqual(said, counts);
  });
});

test("tabs are chosen by arrows, Home and End, with one stop, and all cards follow", async () => {
  await at("large", { hash: HASH }, async (tab) => {
    const list = card(tab, "Latency").getByRole("tablist", { name: "rate" });
    const tabs = await list.getByRole("tab").allTextContents();
    assert.deepEqual(tabs, ["1000", "2000", "4000"]);
    const chosen = () => list.locator('[aria-selected="true"]').textContent();
    const stops = () => list.locator('[tabindex="0"]').allTextContents();
    assert.equal(await chosen(), "2000");
    await list.locator('[aria-selected="true"]').focus();
    for (const [key, due] of [["ArrowRight", "4000"], ["ArrowRight", "1000"], ["ArrowLeft", "4000"], ["Home", "1000"], ["End", "4000"]]) {
      await tab.keyboard.press(key);
      await until(tab, (due) => document.activeElement?.getAttribute("role") === "tab" && document.activeElement.textContent === due && document.activeElement.getAttribute("aria-selected") === "true", due);
      assert.deepEqual(await stops(), [due]);
      assert.match(await card(tab, "Latency").locator(".answer").textContent(), new RegExp(` at rate ${due}\\b`));
      assert.match(await card(tab, "CPU").locator(".answer").textContent(), new RegExp(` at rate ${due}\\b`));
    }
    const panel = card(tab, "Latency").getByRole("tabpanel");
    assert.equal(await panel.getAttribute("aria-labelledby"), await list.locator('[aria-selected="true"]').getAttribute("id"));
    assert.equal(await list.locator('[aria-selected="true"]').getAttribute("aria-controls"), await panel.getAttribute("id"));
    assert.match(await tab.evaluate(() => location.hash), /slice\.rate=4000/);
    await list.getByRole("tab", { name: "1000" }).click();
    await until(tab, () => location.hash.includes("slice.rate=1000"));
  });
});

test("an axis that is not a tab is chosen from a list, for all cards", async () => {
  await at("large", { hash: HASH }, async (tab) => {
    const before = await card(tab, "Latency").getByRole("table").textContent();
    const bar = tab.getByRole("group", { name: "Cards are cut at" });
    assert.deepEqual(await bar.locator("label > span").allTextContents(), ["payload", "subscribers"]);
    await bar.getByLabel("payload").selectOption("4KiB");
    await until(tab, () => [...document.querySelectorAll(".answer-card .cut-at")].every((about) => about.textContent.includes("payload 4KiB")));
    assert.notEqual(await card(tab, "Latency").getByRole("table").textContent(), before);
  });
});

test("a name in a card opens its evidence", async () => {
  await at("large", { hash: HASH }, async (tab) => {
    await card(tab, "Latency").getByRole("button", { name: "nanomsg" }).click();
    const dialog = tab.getByRole("dialog");
    await dialog.getByText("Repeat these runs").waitFor();
    assert.match(await dialog.getByRole("heading", { level: 2 }).textContent(), /^nanomsg 1KiB.*rate=2000/);
  });
});

test("throughputs of different work are not compared, and each has the share that arrived", async () => {
  await at("partly", { hash: "#slice.payload=64B" }, async (tab) => {
    const shown = card(tab, "Throughput");
    assert.match(await shown.locator(".answer").textContent(), /^not comparable.*: each dropped a different share$/);
    assert.match(await shown.getByRole("row").filter({ hasText: "zeromq" }).textContent(), /10\.\d? ?% arrived/);
    assert.match(await shown.getByRole("row").filter({ hasText: "nng" }).textContent(), /≥ /);
    assert.deepEqual((await rowsOf(shown)).filter(({ isBest }) => isBest), []);
  });
});

test("losses have a card where there are any, and none elsewhere", async () => {
  await at("large", { hash: "#slice.payload=2KiB&slice.subscribers=4&slice.rate=2000" }, async (tab) => {
    assert.match(await card(tab, "Losses").locator(".answer").textContent(), /^only nng lost messages at rate 2000$/);
    const rows = await rowsOf(card(tab, "Losses"));
    assert.deepEqual(rows.filter(({ value }) => value !== "0").map(({ name }) => name), ["nng"]);
  });
  await at("partly", {}, async (tab) => {
    assert.deepEqual(await tab.locator(".answer-card h3").allTextContents(), ["Latency", "Throughput", "CPU"]);
  });
});

test("a busy machine is said above the cards, its figures are marked, and the comparison stands", async () => {
  await at("busy", {}, async (tab, { records }) => {
    const warning = tab.locator(".warning.busy");
    assert.match(await warning.textContent(), new RegExp(`The machine was busy in ${records.length} of ${records.length} runs`));
    const top = async (what) => (await what.boundingBox()).y;
    assert.ok((await top(warning)) < (await top(tab.locator("details.trust"))));
    const { results: [{ points: [point] }] } = await pageData(tab);
    const shown = card(tab, "Latency");
    const rank = point.ranks.latency_p50_ns;
    assert.equal(await shown.locator(".answer").textContent(), expected(rank, point.leads?.latency_p50_ns, CARDS[0][2], ""));
    const rows = await rowsOf(shown);
    assert.ok(rows.length === 4 && rows.every(({ isHollow, value }) => isHollow && value.startsWith("! ")), JSON.stringify(rows));
    assert.match(await tab.locator("details.trust > summary").textContent(), new RegExp(`${records.length} runs: 0 ok, ${records.length} unreliable$`));
  });
});

test("the line of trust counts the runs, and opens the list of those that are not ok with their reasons", async () => {
  for (const name of ["failures", "partly", "large"]) {
    await at(name, {}, async (tab, { records }) => {
      const { valid = 0, partly = 0, invalid = 0, failed = 0 } = tally(records.map(verdict));
      const line = tab.locator("details.trust > summary");
      const said = await line.textContent();
      const number = (word) => Number((new RegExp(`([\\d,]+) ${word}\\b`).exec(said)?.[1] ?? "0").replaceAll(",", ""));
      assert.deepEqual([number("runs"), number("ok"), number("unreliable"), number("failed")], [records.length, valid, partly + invalid, failed], said);
      if (name === "partly") assert.match(said, /unreliable for p99$/);
      const list = tab.locator("details.trust .not-ok");
      assert.equal(await list.isVisible(), false);
      await line.focus();
      await tab.keyboard.press("Enter");
      await list.waitFor();
      const rows = await list.getByRole("listitem").allTextContents();
      assert.equal(rows.length, Math.min(20, partly + invalid + failed));
      const reasons = new Set(records.flatMap((record) => record.verdict.reasons.map(({ reason }) => reason)));
      for (const row of rows) assert.ok([...reasons].some((reason) => row.includes(reason)), row);
      await list.getByRole("button").first().click();
      await tab.getByRole("dialog").getByText(/reason|Recorded|failed|unreliable|valid|invalid/).first().waitFor();
    });
  }
});

test("of two results the first screen counts what has changed, and leads to the comparison", async () => {
  await at("two", {}, async (tab) => {
    const { comparison: { same } } = await pageData(tab);
    const changes = same.flatMap(({ changes }) => changes.filter(({ column }) => column === "latency_p50_ns"));
    const counts = tally(changes.map(({ outcome }) => (outcome === "undecided" ? "open" : outcome)));
    const words = ["worse", "better", "changed", "no difference", "open"].filter((word) => counts[word]).map((word) => `${counts[word]} ${word}`);
    const line = tab.locator("#answer p.lead");
    assert.equal(await line.textContent(), `after against before, latency p50: ${words.join(", ")}. Comparison`);
    await line.getByRole("button").click();
    await until(tab, () => document.activeElement?.closest("section")?.id === "comparison");
  });
});

/** Charts of the page, and those that are drawn. */
const drawn = (tab) => tab.evaluate(() => {
  const charts = [...document.querySelectorAll("main figure[data-chart]")];
  return { all: charts.length, drawn: charts.filter((chart) => chart.dataset.drawn === "1" && chart.querySelector(".plot svg, .plot .nothing, table") !== null).length };
});

for (const name of ["large", "failures", "two", "capacity"]) {
  test(`${name}: a page that nobody scrolls has all its charts, folded or not`, async () => {
    await at(name, { viewport: { width: 1280, height: 800 } }, async (tab) => {
      await until(tab, () => document.querySelectorAll("main > section.waiting").length === 0);
      await until(tab, () => [...document.querySelectorAll("main figure[data-chart]")].every((chart) => chart.dataset.drawn === "1"));
      const { all, drawn: there } = await drawn(tab);
      assert.ok(all > 3, `${all} charts`);
      assert.equal(there, all);
      assert.equal(await tab.evaluate(() => scrollY), 0);
      assert.ok((await tab.locator(".answer-card .fill").count()) > 1);
      // What was drawn while folded has the width that it unfolds to.
      await tab.evaluate(() => document.querySelectorAll("main details.fold").forEach((fold) => (fold.open = true)));
      await until(tab, () => [...document.querySelectorAll("main figure[data-chart] .plot > div > svg")].every((drawing) => Math.abs(drawing.getBoundingClientRect().width - drawing.closest(".plot").clientWidth) < 2));
    });
  });
}

/** Opens a page that remembers which links and cards it has ever shown. */
async function remembered(name, act) {
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 } });
  try {
    const tab = await context.newPage();
    await tab.addInitScript(() => {
      window.ever = new Set();
      const look = () => document.querySelectorAll("nav.sections a, .answer-card h3").forEach((one) => window.ever.add(one.textContent));
      new MutationObserver(look).observe(document, { childList: true, subtree: true });
    });
    await tab.goto(pathToFileURL(fixture(name).page).href);
    await until(tab, () => document.querySelectorAll("main > section.waiting").length === 0);
    await act(tab);
  } finally {
    await context.close();
  }
}

for (const name of ["failures", "empty", "old"]) {
  test(`${name}: nothing flashes up that there is nothing for`, async () => {
    await remembered(name, async (tab) => {
      const [ever, now] = await tab.evaluate(() => [[...window.ever].sort(), [...new Set([...document.querySelectorAll("nav.sections a, .answer-card h3")].filter((one) => one.checkVisibility()).map((one) => one.textContent))].sort()]);
      assert.deepEqual(ever, now);
      if (name === "empty") assert.equal(await tab.locator(".answer-card").count(), 0);
    });
  });
}

for (const name of ["large", "partly", "failures", "server", "capacity", "busy"]) {
  test(`${name}: question, cards and trust are on the first screen of 1280 by 800, and all else is folded`, async () => {
    await at(name, { viewport: { width: 1280, height: 800 } }, async (tab) => {
      const { results: [{ question }] } = await pageData(tab);
      assert.equal(await tab.locator("main .question").textContent(), question);
      const bottom = await tab.locator("main .question, main .answer-card, main details.trust > summary").evaluateAll((all) => Math.max(...all.map((one) => one.getBoundingClientRect().bottom)));
      assert.ok(bottom <= 800, `${bottom} px`);
      assert.ok((await tab.locator(".answer-card").count()) > 0);
      assert.equal(await tab.locator("main details.fold[open]").count(), 0);
      await accessible(tab, name);
    });
  });
}

for (const colorScheme of ["light", "dark"]) {
  test(`a phone, ${colorScheme}: cards stand one below the other, nothing needs sideways scroll`, async () => {
    for (const name of ["large", "server", "hostile", "capacity"]) {
      await at(name, { viewport: { width: 390, height: 844 }, colorScheme }, async (tab) => {
        const boxes = await tab.locator(".answer-card").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
        assert.ok(boxes.length > 0 && boxes.every(({ left, right }) => left >= 0 && right <= 390), JSON.stringify(boxes));
        for (let index = 1; index < boxes.length; index += 1) assert.ok(boxes[index].top >= boxes[index - 1].bottom, `${name}: card ${index}`);
        assert.equal(await tab.evaluate(() => document.scrollingElement.scrollWidth), 390);
        assert.ok((await tab.locator(".track").evaluateAll((all) => Math.min(...all.map((one) => one.getBoundingClientRect().width)))) > 40, "bars have room");
        await accessible(tab, name);
      });
    }
  });
}

test("on paper the cards stand with their chosen tab, and every row", async () => {
  await at("large", { hash: HASH, colorScheme: "dark" }, async (tab) => {
    await tab.emulateMedia({ media: "print" });
    for (const [name] of CARDS) {
      assert.equal(await card(tab, name).locator(".answer").isVisible(), true);
      assert.ok((await rowsOf(card(tab, name))).every(({ bar, track }) => bar > 0 && track > 30));
    }
    const tabs = card(tab, "Latency").locator('[role="tab"]');
    assert.deepEqual(await tabs.evaluateAll((all) => all.filter((one) => one.checkVisibility()).map((one) => one.textContent)), ["2000"]);
  });
});
