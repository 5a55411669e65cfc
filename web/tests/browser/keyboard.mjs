// Everything can be reached and worked without a pointer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawAll, section, until } from "./browser.mjs";
import { at } from "./world.mjs";

/** More stops than the page has. */
const STOPS = 600;

test("Tab goes through everything in order, and the focus is seen", async () => {
  await at("failures", {}, async (tab) => {
    await drawAll(tab);
    await tab.evaluate(() => {
      scrollTo(0, 0);
      document.activeElement?.blur();
    });
    const sections = new Set();
    const unseen = [];
    let stops = 0;
    for (; stops < STOPS; stops += 1) {
      await tab.keyboard.press("Tab");
      const stop = await tab.evaluate(() => {
        const element = document.activeElement;
        if (element === document.body) return null;
        // A radio button and a box may show the focus on their label.
        const near = [element, element.nextElementSibling, element.parentElement].filter(Boolean);
        const marked = near.some((one) => {
          const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
          return (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none";
        });
        return { marked, section: element.closest("main > section")?.id ?? element.closest("header, nav")?.localName ?? "", what: element.outerHTML.slice(0, 120) };
      });
      if (stop === null) break;
      if (stops === 0) assert.match(stop.what, /Skip/, "the first stop skips the navigation");
      if (!stop.marked) unseen.push(stop.what);
      sections.add(stop.section);
    }
    assert.ok(stops < STOPS, "Tab leaves the page again");
    assert.deepEqual(unseen, []);
    const visible = await tab.locator("main > section:visible").evaluateAll((all) => all.map((one) => one.id));
    assert.deepEqual(visible.filter((id) => !sections.has(id)), [], "sections that Tab does not reach");
    assert.ok(sections.has("header") && sections.has("nav"));
  });
});

test("the skip link goes past the navigation, and a section's link to the section", async () => {
  await at("failures", {}, async (tab) => {
    await tab.keyboard.press("Tab");
    await tab.keyboard.press("Enter");
    await until(tab, () => document.activeElement?.id === "main");
    const link = tab.getByRole("navigation", { name: "Sections" }).getByRole("link", { name: "All runs" });
    await link.focus();
    await tab.keyboard.press("Enter");
    await until(tab, () => document.activeElement?.closest("section")?.id === "runs");
    await until(tab, () => document.querySelector('nav [aria-current="true"]')?.textContent === "All runs");
  });
});

test("a dialog keeps the focus until it is closed", async () => {
  await at("failures", { hash: "#cell=0" }, async (tab) => {
    const dialog = tab.getByRole("dialog");
    await dialog.waitFor();
    for (let stop = 0; stop < 40; stop += 1) {
      await tab.keyboard.press("Tab");
      assert.equal(await tab.evaluate(() => document.activeElement === document.body || document.activeElement.closest("dialog") !== null), true);
    }
  });
});

test("a section that was gone to stays while the page grows above it, until the reader moves by whatever means", async () => {
  await at("failures", {}, async (tab) => {
    await drawAll(tab);
    const found = await section(tab, "Downloads");
    const top = () => found.evaluate((element) => element.getBoundingClientRect().top);
    // What has grown is told in the next frame, and the page placed then.
    const grow = () =>
      tab.evaluate(async () => {
        const first = document.querySelector("main > section:not([hidden])");
        const more = first.appendChild(document.createElement("div"));
        more.style.height = "120px";
        for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
        return scrollY;
      });
    const there = await top();
    await grow();
    assert.equal(Math.round(await top()), Math.round(there));
    await section(tab, "Downloads");
    // As a bar that is dragged.
    await tab.evaluate(() => scrollTo(0, 0));
    assert.equal(await grow(), 0);
  });
});
