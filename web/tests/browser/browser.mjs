// A real browser, and pages that tell what they should not have done.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Longest wait for anything that a page should do, ms. */
export const DEADLINE_MS = 60_000;

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? PLACES.find((place) => existsSync(place));
  if (executablePath === undefined) throw new Error("no Chromium: apt-get install chromium, or name one in CHROMIUM");
  const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath, args, timeout: 60_000 });
}

/** Opens a page from disk. `close` asserts that it has said nothing to the
 *  console, thrown nothing, asked for nothing but itself and shown no dialog. */
export async function open(browser, file, { hash = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(DEADLINE_MS);
  const faults = [];
  const tab = await context.newPage();
  const address = pathToFileURL(file).href;
  tab.on("console", (message) => {
    if (["error", "warning", "assert"].includes(message.type())) faults.push(`console ${message.type()}: ${message.text()}`);
  });
  tab.on("pageerror", (error) => faults.push(`error: ${error.stack ?? error}`));
  tab.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  tab.on("popup", (popup) => faults.push(`window: ${popup.url()}`));
  tab.on("request", (request) => {
    const url = request.url();
    if (url.split("#")[0] !== address && !url.startsWith("data:") && !url.startsWith("blob:")) faults.push(`request: ${url}`);
  });
  await tab.goto(`${address}${hash}`);
  await tab.locator("h1").waitFor();
  return {
    tab,
    async close() {
      await context.close();
      assert.deepEqual(faults, []);
    },
  };
}

/** Opens a page, does something with it, closes it. */
export async function visit(browser, file, options, act) {
  const page = await open(browser, file, options);
  try {
    await act(page.tab);
  } catch (error) {
    await page.close().catch((other) => {
      error.message += `\nand the page: ${other.message}`;
    });
    throw error;
  }
  await page.close();
}

/** The data that the program has put into the page. */
export const pageData = (tab) => tab.evaluate(() => JSON.parse(document.getElementById("pubmark-page").textContent));

/** Opens all that is folded in an element, but tables of numbers and menus. */
export const unfold = (where) => where.evaluateAll((all) => all.forEach((one) => one.querySelectorAll("details.fold").forEach((fold) => (fold.open = true))));

/** Opens a section by the navigation, so that it is drawn, and all that is folded in it. */
export async function section(tab, name) {
  await tab.getByRole("navigation", { name: "Sections" }).getByRole("link", { name, exact: true }).click();
  const found = tab.locator("main > section").filter({ has: tab.getByRole("heading", { level: 2, name, exact: true }) });
  await found.waitFor();
  await unfold(found);
  return found;
}

/** Waits until a question about the page is answered with yes. */
export const until = (tab, question, argument) => tab.waitForFunction(question, argument, { timeout: DEADLINE_MS });

/** Waits until what a choice has changed is drawn: the page draws at the next frame. */
export const frame = (tab) => tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => done())));

/** The first chart of a kind. */
export const chart = (tab, id) => tab.locator(`figure[data-chart="${id}"]`).first();

/** Opens a chart's table of numbers and reads its rows. */
export async function numbers(figure) {
  const fold = figure.locator("details.data");
  if (!(await fold.evaluate((element) => element.open))) await fold.locator("summary").click();
  await fold.getByRole("table").waitFor();
  return fold.getByRole("row").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
}

/** Unfolds every section, draws every chart by scrolling to it, and returns the charts' names. */
export async function drawAll(tab) {
  await until(tab, () => document.querySelectorAll("main > section.waiting").length === 0);
  await unfold(tab.locator("main"));
  const names = [];
  for (const figure of await tab.locator("main figure[data-chart]:visible").all()) {
    await figure.scrollIntoViewIfNeeded();
    const name = await figure.getAttribute("data-chart");
    await tab.locator(`main figure[data-chart="${name}"][data-drawn="1"]`).first().waitFor();
    names.push(name);
  }
  return names;
}

/** Asserts that axe has no finding against WCAG 2 A and AA. */
export async function accessible(tab, where) {
  if (!(await tab.evaluate(() => "axe" in window))) await tab.evaluate(readFileSync(source("axe-core"), "utf8"));
  const found = await tab.evaluate(async () => {
    const { violations } = await window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 200)} (${failureSummary})`).join("; ")}`);
  });
  assert.deepEqual(found, [], where);
}

/** Clicks and returns the file that is handed over, as text or as bytes. */
export async function downloaded(tab, click) {
  const [download] = await Promise.all([tab.waitForEvent("download"), click()]);
  const chunks = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return { name: download.suggestedFilename(), bytes, text: bytes.toString("utf8") };
}

/** The source of a package's main file. */
export const source = (name) => createRequire(import.meta.url).resolve(name);
