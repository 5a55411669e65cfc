// Makes the fixtures for people to look at: node tests/fixtures.mjs DIR [NAME…]
import { join, resolve } from "node:path";
import { FIXTURES } from "./fixtures/all.mjs";
import { fresh, report } from "./fixtures/program.mjs";

const [folder, ...names] = process.argv.slice(2);
if (folder === undefined) throw new Error("usage: node tests/fixtures.mjs DIR [NAME…]");
for (const name of names.length > 0 ? names : Object.keys(FIXTURES)) {
  const begun = performance.now();
  const folders = FIXTURES[name](fresh(join(resolve(folder), name)));
  console.log(`${report(...folders)} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
}
