// The report's page in a real browser, made by the program itself:
//
//     cargo build -p pubmark && node --test tests/browser.test.mjs
import "./browser/every.mjs";
import "./browser/figures.mjs";
import "./browser/runs.mjs";
import "./browser/charts.mjs";
import "./browser/files.mjs";
import "./browser/hostile.mjs";
import "./browser/kinds.mjs";
import "./browser/capacity.mjs";
import "./browser/keyboard.mjs";
import "./browser/live.mjs";
import "./browser/speed.mjs";
