// How soon a page of thousands of runs answers, in a real browser. Apart from the others,
// which may be played beside each other:
//
//     cargo build -p pubmark && node --test tests/speed.test.mjs
import "./browser/speed.mjs";
