// Seals the built page: only the script that it was built with may run, by its
// hash, and a stamp says of which sources it was made.
//
//     node build/seal.mjs [BUILT [SEALED]]
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const built = process.argv[2] ?? join(root, "dist/index.html");
const sealed = process.argv[3] ?? join(root, "report.html");

/** Files beside `src` on which the built page depends. */
const BESIDE = ["index.html", "package.json", "package-lock.json", "vite.config.mjs", "tsconfig.json", "build/seal.mjs"];

/** All that the built page depends on, relative to `web`, in a fixed order. */
function sources() {
  const within = (folder) => readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? within(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]));
  return [...within("src"), ...BESIDE].sort();
}

let html = readFileSync(built, "utf8");
const scripts = [...html.matchAll(/<script type="module"[^>]*>([\s\S]*?)<\/script>/g)];
if (scripts.length !== 1) throw new Error(`one script expected, ${scripts.length} found`);
const hash = createHash("sha256").update(scripts[0][1]).digest("base64");
if (!html.includes("script-src 'unsafe-inline'")) throw new Error("the page has no policy that could be sealed");
html = html.replace("script-src 'unsafe-inline'", () => `script-src 'sha256-${hash}'`);

const all = createHash("sha256");
for (const path of sources()) all.update(path).update("\0").update(readFileSync(join(root, path))).update("\0");
// Whoever passes a report on passes these libraries on as well.
const NOTICES = ["echarts/NOTICE", "echarts/licenses/LICENSE-d3", "zrender/LICENSE", "tslib/LICENSE.txt"];
const texts = NOTICES.map((path) => readFileSync(join(root, "node_modules", path), "utf8").trim().replace(/--+/g, "-"));
const notices = `This page holds Apache ECharts, under the Apache License 2.0 (https://www.apache.org/licenses/LICENSE-2.0), and:\n\n${texts.join("\n\n")}`;
html = html.replace("<head>", () => `<head>\n<!-- sources ${all.digest("hex")} -->\n<!-- ${notices}\n-->`);
writeFileSync(sealed, html);
