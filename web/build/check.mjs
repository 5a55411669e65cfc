// Checks what only Node can: types, unit tests, and that the page that is kept
// is what these sources build, byte for byte.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The oldest Node that the build's tools run on. */
const NODE = [20, 19];

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const [major, minor] = process.versions.node.split(".").map(Number);
if (major < NODE[0] || (major === NODE[0] && minor < NODE[1])) {
  console.log(`left out: types, unit tests and a fresh build of the page need Node ${NODE.join(".")}, this is ${process.versions.node}`);
  process.exit(0);
}

/** Runs a step in `web`; what it says is shown where it fails. */
function step(name, command, ...words) {
  const done = spawnSync(command, words, { cwd: root, encoding: "utf8", timeout: 300_000 });
  if (done.status === 0) return;
  console.error(`${name}: ${done.error?.message ?? `${done.stdout}${done.stderr}`}`);
  process.exit(1);
}

const tool = (name) => join(root, "node_modules/.bin", name);
const folder = mkdtempSync(join(tmpdir(), "pubmark-web-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

step("types", tool("tsc"), "--noEmit");
step("unit tests", "npm", "run", "--silent", "test:unit");
step("build", tool("vite"), "build", "--logLevel", "error", "--outDir", folder);
step("seal", process.execPath, "build/seal.mjs", join(folder, "index.html"), join(folder, "report.html"));
if (!readFileSync(join(folder, "report.html")).equals(readFileSync(join(root, "report.html")))) {
  console.error("web/report.html is not what these sources build: run `make web` and commit it");
  process.exit(1);
}
console.log("page: types, unit tests and a fresh build agree with web/report.html");
