// The report's page in a real browser, made by the program itself: what each kind of page
// and each part of it does. What holds of all pages is in pages.test.mjs.
//
//     cargo build -p pubmark && node --test tests/browser.test.mjs
import "./browser/cards.mjs";
import "./browser/figures.mjs";
import "./browser/runs.mjs";
import "./browser/charts.mjs";
import "./browser/fit.mjs";
import "./browser/files.mjs";
import "./browser/hostile.mjs";
import "./browser/kinds.mjs";
import "./browser/capacity.mjs";
import "./browser/guarantees.mjs";
import "./browser/keyboard.mjs";
import "./browser/live.mjs";
