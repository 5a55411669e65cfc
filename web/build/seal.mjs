// Seals the built page: only the scripts that it was built with may run, by
// their hash, and a stamp says of which sources it was made.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = new URL("..", import.meta.url).pathname;
const file = join(root, "dist/index.html");
let html = readFileSync(file, "utf8");

const hash = (text) => createHash("sha256").update(text).digest("base64");
const scripts = [...html.matchAll(/<script type="module"[^>]*>([\s\S]*?)<\/script>/g)].map((match) => `'sha256-${hash(match[1])}'`);
if (scripts.length !== 1) throw new Error(`one script expected, ${scripts.length} found`);
html = html.replace("script-src 'unsafe-inline'", `script-src ${scripts.join(" ")}`);

/** All that the built page depends on, in a fixed order. */
export function sources() {
  const files = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(root.length));
  return [...files, "index.html", "package.json", "package-lock.json", "vite.config.mjs", "build/seal.mjs"].sort();
}

const all = createHash("sha256");
for (const path of sources()) all.update(path).update("\0").update(readFileSync(join(root, path))).update("\0");
html = html.replace("<head>", `<head>\n<!-- sources ${all.digest("hex")} -->`);
writeFileSync(join(root, "report.html"), html);
