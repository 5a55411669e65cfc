// A study that is watched while it runs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { PUBMARK } from "../fixtures/program.mjs";
import { DEADLINE_MS, until } from "./browser.mjs";
import { browser } from "./world.mjs";

/** More than a test will ever see: the program runs until the test has seen enough, and ends it. */
const RUNS = 900;
const STUDY = `title = "Watched"
question = "Does the page follow?"
[workload]
pattern = "pairs"
transport = "inproc"
rate = 100
payload = "64B"
warmup = "0s"
duration = "1s"
[axes]
system = ["kernel"]
[run]
repeats = ${RUNS}
`;

/** The address that the program says it serves. What it says is collected, also afterwards: a pipe that nobody reads would stop it. */
function address(program, said) {
  return new Promise((resolve, reject) => {
    const lines = createInterface({ input: program.stderr });
    lines.on("close", () => reject(new Error(`the program ended without an address: ${said.join("\n")}`)));
    lines.on("line", (line) => {
      said.push(line);
      const found = /http:\/\/127\.0\.0\.1:\d+\//.exec(line);
      if (found) resolve(found[0]);
    });
  });
}

/** Waits until the page's head counts so many runs, and returns how many it does. */
async function counts(tab, least) {
  await until(tab, (least) => Number(/(\d+) runs?/.exec(document.querySelector("header").textContent)?.[1] ?? 0) >= least, least);
  return Number(/(\d+) runs?/.exec(await tab.locator("header").first().textContent())[1]);
}

test("the page follows a study, and stays usable when the program has gone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pubmark-live-"));
  writeFileSync(join(folder, "study.toml"), STUDY);
  const results = join(folder, "results");
  const program = spawn(PUBMARK, ["run", join(folder, "study.toml"), "--watch", "--out", results], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => program.on("exit", resolve));
  const context = await (await browser()).newContext();
  context.setDefaultTimeout(DEADLINE_MS);
  try {
    const said = [];
    const url = await address(program, said);
    const tab = await context.newPage();
    const errors = [];
    tab.on("pageerror", (error) => errors.push(error.message));
    await tab.goto(url);
    const strip = tab.getByRole("status");
    await strip.getByText("running").waitFor().catch(async (error) => {
      throw new Error(`${error.message}; the page says: ${await strip.allTextContents()}; the program (status ${program.exitCode}): ${said.slice(-20).join("\n")}`);
    });
    await strip.getByText(`of ${RUNS} runs`).waitFor();
    const before = await counts(tab, 1);
    const after = await counts(tab, before + 1);
    program.kill("SIGINT");
    await ended;
    await strip.getByText("does not answer").waitFor();
    // What it was sent is all there.
    await tab.evaluate(() => (location.hash = "#run=0"));
    await tab.getByRole("dialog").getByText("latency from the due time").waitFor();
    assert.deepEqual(errors, []);
    // The page counted only runs that have a record.
    const records = readFileSync(join(results, "runs.jsonl"), "utf8").trim().split("\n").length;
    assert.ok(before < after && after <= records && records < RUNS, `${before}, ${after}, ${records} records`);
  } finally {
    program.kill("SIGINT");
    await ended;
    await context.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
