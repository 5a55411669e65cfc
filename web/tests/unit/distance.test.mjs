import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { remotes, remoteScale, headline } = await source("charts/distance");

/** A result of one point. `systems` are [name, median, word, distance]. */
function point(key, unthrottled, kind, best, ...systems) {
  const cells = systems.map(([system, median, word, distance = null]) => ({ system, word, distance, figures: { [key]: [median, null, null] }, status: "valid" }));
  const at = { unthrottled, cells: cells.map((_, index) => index), ranks: { [key]: { kind, systems: best, why: null, repeats_more: null } } };
  return [{ cells }, at];
}

test("the ratio of a latency is to the best-looking candidate, the nearest first", () => {
  const [result, at] = point("latency_p50_ns", false, "open", ["a", "b"],
    ["slow", 400, "behind", [3, 5]], ["b", 110, "candidate", [1, 1.3]], ["floor", 10, "reference"], ["a", 100, "candidate", [1, null]]);
  assert.equal(headline(at), "latency_p50_ns");
  const rows = remotes(result, at, "lower");
  assert.deepEqual(rows.map(({ system, ratio, isCandidate, cell }) => [system, ratio, isCandidate, cell]), [["a", 1, true, 3], ["b", 1.1, true, 1], ["slow", 4, false, 0]]);
  assert.deepEqual(rows.map(({ range }) => range), [{ least: 1, most: null }, { least: 1, most: 1.3 }, { least: 3, most: 5 }]);
});

test("of a throughput more is better: half of the best one is twice as far", () => {
  const [result, at] = point("delivered_per_s", true, "winner", ["a"], ["a", 1000, "winner"], ["b", 500, "behind", [1.9, null]]);
  assert.equal(headline(at), "delivered_per_s");
  assert.deepEqual(remotes(result, at, "higher").map(({ ratio, range }) => [ratio, range]), [[1, null], [2, { least: 1.9, most: null }]]);
});

test("a candidate that looks worse than one behind stands before it", () => {
  const [result, at] = point("latency_p50_ns", false, "open", ["a"], ["b", 150, "behind", [1.2, 2]], ["a", 100, "candidate", [1, 2]], ["c", 300, "candidate", [1, null]]);
  assert.deepEqual(remotes(result, at, "lower").map(({ system }) => system), ["a", "c", "b"]);
});

test("what cannot be ranked has no rows, and a median of zero has no ratio", () => {
  const [unranked, at] = point("delivered_per_s", true, "unranked", [], ["a", 1, "not comparable"], ["b", 2, "not comparable"]);
  assert.deepEqual(remotes(unranked, at, "higher"), []);
  const [alone, there] = point("latency_p50_ns", false, "alone", ["a"], ["a", 1, "alone"], ["b", 2, "unreliable"]);
  assert.deepEqual(remotes(alone, there, "lower"), []);
  const [zero, here] = point("latency_p50_ns", false, "open", ["a", "b"], ["a", 0, "candidate"], ["b", 3, "candidate"]);
  assert.deepEqual(remotes(zero, here, "lower").map(({ ratio }) => ratio), [null, null]);
});

test("the axis holds 1, every range, and room for an arrow", () => {
  const row = (ratio, least, most) => ({ cell: 0, system: "a", ratio, range: { least, most }, isCandidate: true, standing: "behind" });
  const closed = remoteScale([row(3, 2, 5)]);
  assert.ok(closed.log && closed.min < 1 && closed.min > 0.9 && closed.max > 5 && closed.max < 6);
  assert.deepEqual(closed.ticks, [1, 1.5, 2, 3, 4]);
  assert.deepEqual(remoteScale([row(3, 2, 300)]).ticks.filter((tick) => tick < 10), [1, 3]);
  assert.ok(remoteScale([row(3, 2, 5), row(1, 1, null)]).max > 7.5);
  assert.ok(remoteScale([row(0.8, 1, 2)]).min < 0.8);
  const even = remoteScale([{ cell: 0, system: "a", ratio: 1, range: null, isCandidate: true, standing: "winner" }]);
  assert.ok(even.max > even.min);
});
