// What holds of every page of the report, in a real browser:
//
//     cargo build -p pubmark && node --test tests/pages.test.mjs
import "./browser/every.mjs";
