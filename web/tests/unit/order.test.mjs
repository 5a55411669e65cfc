import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { matcher, orderText, parseOrder, sorted, turned } = await source("order");

const values = (list, down = false) => sorted(list, (value) => value, down);

test("numbers go by size, numbers within text too", () => {
  assert.deepEqual(values([10, 9, 100]), [9, 10, 100]);
  assert.deepEqual(values(["run 10", "run 9", "Run 1"]), ["Run 1", "run 9", "run 10"]);
});

test("what has no value comes last either way", () => {
  assert.deepEqual(values([null, 2, null, 1]), [1, 2, null, null]);
  assert.deepEqual(values([null, 2, null, 1], true), [2, 1, null, null]);
});

test("equal rows keep their order, and the rows given stay as they are", () => {
  const rows = [{ at: 0, by: 1 }, { at: 1, by: 0 }, { at: 2, by: 1 }, { at: 3, by: 0 }];
  assert.deepEqual(sorted(rows, (row) => row.by, false).map((row) => row.at), [1, 3, 0, 2]);
  assert.deepEqual(sorted(rows, (row) => row.by, true).map((row) => row.at), [0, 2, 1, 3]);
  assert.deepEqual(rows.map((row) => row.at), [0, 1, 2, 3]);
});

test("pressing a head goes up, down and back, and survives the address", () => {
  const up = turned(null, "p50");
  const down = turned(up, "p50");
  assert.deepEqual([up, down, turned(down, "p50")], [{ key: "p50", down: false }, { key: "p50", down: true }, null]);
  assert.deepEqual(turned(down, "lost"), { key: "lost", down: false });
  for (const order of [null, up, down]) assert.deepEqual(parseOrder(orderText(order)), order);
});

test("every word has to be there, in any order and case", () => {
  const fits = matcher(" 1KiB  NATS ");
  assert.ok(fits("nats 1kib subscribers=4"));
  assert.ok(!fits("redis 1KiB"));
  assert.ok(matcher("")("anything"));
  // What is typed is not a pattern.
  assert.ok(!matcher(".*")("nats") && matcher("(")("a (b)"));
});
