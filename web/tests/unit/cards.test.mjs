import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { trackEnd } = await source("charts/bartable");
const { trustWords } = await source("sections/trust");

test("the track ends at the farthest interval, unless that would shorten every bar", () => {
  assert.equal(trackEnd([{ value: 3, hi: null }, { value: 4, hi: 5 }]), 5);
  assert.equal(trackEnd([{ value: 3, hi: 400 }, { value: 4, hi: 5 }]), 6);
  assert.equal(trackEnd([{ value: 0, hi: 0 }]), 1);
  assert.equal(trackEnd([]), 1);
});

const runs = (of) => ({ valid: 0, partly: 0, invalid: 0, failed: 0, missing: 0, made_again: 0, reasons: {}, ...of });
const touching = (...touches) => touches.map((touches) => ({ reasons: [{ reason: "noisy-machine", runs: 1, touches, evidence: "" }] }));

test("the line of trust counts, and names the figures where few are touched", () => {
  assert.equal(trustWords({ runs: runs({ valid: 72 }), cells: [] }), "72 runs: 72 ok");
  assert.equal(trustWords({ runs: runs({ valid: 71, partly: 1 }), cells: touching("p99") }), "72 runs: 71 ok, 1 unreliable for p99");
  assert.equal(trustWords({ runs: runs({ valid: 1, partly: 2 }), cells: touching("p99", "p50 and p99") }), "3 runs: 1 ok, 2 unreliable for p99 and p50");
  assert.equal(trustWords({ runs: runs({ partly: 2 }), cells: touching("rates, p50 and p99") }), "2 runs: 0 ok, 2 unreliable");
  assert.equal(trustWords({ runs: runs({ valid: 1, partly: 1, invalid: 1, failed: 1, missing: 6 }), cells: touching("p99", "") }), "4 runs: 1 ok, 2 unreliable, 1 failed, 6 missing");
  assert.equal(trustWords({ runs: runs({ missing: 32 }), cells: [] }), "0 of 32 runs made");
});
