import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { percent, quantity, withInterval } = await source("format");
const { fact, flat } = await source("facts");
const { duration } = await source("live");

test("a value has three digits and the unit that fits after rounding", () => {
  assert.equal(quantity(999, "ns"), "999 ns");
  assert.equal(quantity(999_600, "ns"), "1.00 ms");
  assert.equal(quantity(12_345, "ns"), "12.3 µs");
  assert.equal(quantity(2.5e6, "per_s"), "2.50M/s");
  assert.equal(quantity(1_536, "bytes"), "1.54 kB");
  assert.equal(quantity(2.104, "multiple"), "2.10×");
  assert.equal(quantity(0, "cores"), "0");
  assert.equal(quantity(Number.NaN, "ns"), "–");
});

test("what is not all never reads as 100 %", () => {
  for (const share of [0.99, 0.999, 0.9999, 0.99999, 0.9999999, 1 - Number.EPSILON]) assert.ok(percent(share) !== "100 %" && !percent(share).startsWith("100"), percent(share));
  assert.equal(percent(1), "100 %");
  assert.equal(percent(0.97319), "97.3 %");
});

test("an interval stands beside its value where there is one", () => {
  assert.equal(withInterval([12_300, 12_000, 12_900], "ns"), "12.3 µs (12.0 µs to 12.9 µs)");
  assert.equal(withInterval([12_300, null, null], "ns"), "12.3 µs");
});

test("a record's value is read by its name", () => {
  assert.equal(fact("warmup_ns", 2e8), "200 ms");
  assert.equal(fact("started_s", 0.12), "120 ms");
  assert.equal(fact("rss_bytes_max", 1.2e7), "12.0 MB");
  assert.equal(fact("delivered_bytes_per_s", 5e6), "5.00 MB/s");
  assert.equal(fact("offered_per_s", 1_000), "1.00k/s");
  assert.equal(fact("extent.time_ns", 3e9), "3.00 s");
  assert.equal(fact("delivered", 1_234_567), "1,234,567");
  assert.equal(fact("note", null), "none");
  assert.equal(fact("command", ["a", "-c", "b"]), "a -c b");
  assert.ok(fact("remark", "z".repeat(1e6)).length < 500);
});

test("an object is laid flat, and neither its depth nor its size is its writer's to choose", () => {
  assert.deepEqual(flat({ a: { b: 1, c: [1, 2] }, d: null }), [["a.b", 1], ["a.c", [1, 2]], ["d", null]]);
  assert.deepEqual(flat(null), []);
  assert.equal(flat(Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, i]))).length, 200);
  let deep = {};
  for (let i = 0; i < 10_000; i += 1) deep = { deep };
  assert.equal(flat(deep).length, 1);
});

test("time left is told in the unit that people use", () => {
  assert.deepEqual([0, 45, 600, 12_000].map(duration), ["0 s", "45 s", "10 min", "3 h 20 min"]);
});
