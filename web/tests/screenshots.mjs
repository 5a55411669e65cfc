// Pictures of a report for people to look at: every section and the evidence,
// at the width of a desk and of a phone, light and dark.
//
//     node tests/screenshots.mjs REPORT OUT     REPORT: a folder or a page
import { mkdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser/browser.mjs";

const [report, out] = process.argv.slice(2);
if (report === undefined || out === undefined) throw new Error("usage: node tests/screenshots.mjs REPORT OUT");
const page = pathToFileURL(statSync(report).isDirectory() ? join(resolve(report), "report.html") : resolve(report)).href;
mkdirSync(out, { recursive: true });

const browser = await launch();
try {
  for (const [name, width, height] of [["desk", 1280, 800], ["phone", 390, 844]]) {
    for (const colorScheme of ["light", "dark"]) {
      const context = await browser.newContext({ viewport: { width, height }, colorScheme, deviceScaleFactor: 1 });
      const tab = await context.newPage();
      const picture = (what, where = tab) => where.screenshot({ path: join(out, `${name}-${colorScheme}-${what}.png`) });
      await tab.goto(page);
      await tab.locator("h1").waitFor();
      await picture("00-first-screen");
      await tab.screenshot({ path: join(out, `${name}-${colorScheme}-01-folded.png`), fullPage: true });
      await tab.evaluate(() => document.querySelectorAll("main details.fold").forEach((fold) => (fold.open = true)));
      // What stays at the top while one scrolls would lie over the pictures.
      await tab.addStyleTag({ content: "nav { position: static !important }" });
      const sections = tab.locator("main > section");
      for (let at = 0; at < (await sections.count()); at += 1) {
        const section = sections.nth(at);
        if (await section.isHidden()) continue;
        await section.scrollIntoViewIfNeeded();
        for (const figure of await section.locator("figure[data-chart]").all()) {
          if (!(await figure.isVisible())) continue;
          await figure.scrollIntoViewIfNeeded();
          await tab.locator(`figure[data-chart="${await figure.getAttribute("data-chart")}"][data-drawn]`).first().waitFor({ timeout: 20_000 });
        }
        // A tall table says no more at full length than at its beginning.
        const box = await section.boundingBox();
        const clip = { x: 0, y: box.y + (await tab.evaluate(() => scrollY)), width, height: Math.min(box.height, 4_000) };
        await tab.screenshot({ path: join(out, `${name}-${colorScheme}-${String(at + 2).padStart(2, "0")}-${await section.getAttribute("id")}.png`), clip, fullPage: true });
      }
      for (const [what, hash] of [["evidence-cell", "#cell=0"], ["evidence-run", "#run=0"]]) {
        await tab.goto(`${page}${hash}`);
        await tab.reload();
        const dialog = tab.getByRole("dialog");
        if ((await dialog.count()) === 0) continue;
        await tab.locator("dialog[open] [aria-busy]").waitFor({ state: "detached", timeout: 20_000 }).catch(() => {});
        await picture(`90-${what}`);
      }
      await context.close();
    }
  }
} finally {
  await browser.close();
}
