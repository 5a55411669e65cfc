import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { parseBound, meets, meetsAll, fits, reasonWords } = await source("fit");

const P99 = { key: "latency_p99_ns", label: "latency p99", unit: "ns", better: "lower", group: "latency_p99", about: "" };
const RATE = { key: "delivered_per_s", label: "delivered", unit: "per_s", better: "higher", group: "rates", about: "" };
const cell = (figures, more = {}) => ({ system: "a", status: "valid", axes: {}, point: 0, figures, reasons: [], unthrottled: false, error: null, skipped: null, ...more });
const below = (bound) => ({ figure: P99, isBelow: true, bound });
const above = (bound) => ({ figure: RATE, isBelow: false, bound });
const word = (figures, constraint, more) => meets(cell(figures, more), constraint).meets;

test("a bound is read in the unit of its figure", () => {
  for (const [typed, unit, value] of [
    ["5 ms", "ns", 5e6], ["5ms", "ns", 5e6], [".5 µs", "ns", 500], ["5", "ns", null], ["5 MB", "ns", null], ["5 ms/s", "ns", null],
    ["10k/s", "per_s", 1e4], ["1.2M", "per_s", 1.2e6], ["100", "per_s", 100], ["5 ms", "per_s", null],
    ["100 MB", "bytes", 1e8], ["64 KiB", "bytes", 65536], ["5 s", "bytes", null], ["10 MB/s", "bytes_per_s", 1e7],
    ["99 %", "share", 0.99], ["99.9%", "share", 0.999], ["0.5", "share", 0.5], ["10", "count", 10], ["1.5 cores", "cores", 1.5], ["2×", "multiple", 2],
    ["", "count", null], ["-1", "count", null], ["1e3", "count", null], ["constructor", "count", null], ["1 constructor", "count", null],
  ]) assert.equal(parseBound(typed, unit), value, `${typed} as ${unit}`);
});

test("the whole interval decides, and one that holds the bound is open", () => {
  const figures = { latency_p99_ns: [100, 90, 110], delivered_per_s: [100, 90, 110] };
  assert.deepEqual([111, 110, 100, 90, 89].map((bound) => word(figures, below(bound))), ["yes", "open", "open", "no", "no"]);
  assert.deepEqual([89, 90, 100, 110, 111].map((bound) => word(figures, above(bound))), ["yes", "open", "open", "no", "no"]);
  assert.equal(meets(cell(figures), below(50)).why, "latency p99 100 ns (90 ns to 110 ns) is not below 50 ns");
});

test("what is not known leaves a constraint open, with the reason", () => {
  assert.equal(word({}, below(1)), "open");
  assert.equal(word({ latency_p99_ns: [1, null, null] }, below(100)), "open");
  assert.equal(word({ latency_p99_ns: [1, 1, 1] }, below(100), { unquoted: ["latency_p99_ns"] }), "open");
  assert.equal(word({ latency_p99_ns: [1, 1, 1] }, below(100), { status: "invalid" }), "open");
  assert.match(meets(cell({}, { status: "missing" }), below(1)).why, /not run yet/);
});

test("a figure that is a lower bound can be shown to be above, never below", () => {
  const signs = { delivered_per_s: "≥" };
  const figures = { delivered_per_s: [100, 90, 110] };
  assert.equal(word(figures, above(80), { signs }), "yes");
  assert.equal(word(figures, above(200), { signs }), "open");
  assert.equal(word(figures, { ...above(200), isBelow: true }, { signs }), "open");
  assert.equal(word(figures, { ...above(80), isBelow: true }, { signs }), "no");
});

test("one constraint that is not met settles a point, whatever is open", () => {
  const one = cell({ delivered_per_s: [100, 90, 110] });
  assert.equal(meetsAll(one, [below(1), above(500)]).meets, "no");
  assert.equal(meetsAll(one, [below(1), above(50)]).meets, "open");
  assert.deepEqual(meetsAll(one, [above(50)]), { meets: "yes", why: "" });
});

test("systems are counted over the chosen points, the fitting ones first", () => {
  const rate = { name: "rate", label: "rate", numeric: true, values: [{ value: 1, label: "1" }, { value: 2, label: "2" }] };
  const at = (system, rate, p99, more) => cell({ latency_p99_ns: [p99, p99, p99] }, { system, axes: { rate }, point: rate - 1, ...more });
  const result = {
    axes: [rate],
    systems: [{ name: "floor", kind: "reference" }, { name: "a", kind: "library" }, { name: "b", kind: "library" }, { name: "gone", kind: "library" }],
    points: [{ label: "rate=1" }, { label: "rate=2" }],
    cells: [at("floor", 1, 1), at("a", 1, 10), at("a", 2, 90), at("b", 1, 10), at("b", 2, 20), at("gone", 1, 1, { status: "skipped" })],
  };
  const all = fits(result, [below(50)], () => "");
  assert.deepEqual(all.map(({ system, yes, no, open }) => [system, yes, no, open]), [["b", 2, 0, 0], ["a", 1, 1, 0]]);
  assert.equal(reasonWords(result, all[1]), "rate=2: latency p99 90 ns is not below 50 ns");
  assert.equal(reasonWords(result, all[0]), "");
  assert.deepEqual(fits(result, [below(50)], () => "1").map(({ system, yes, no }) => [system, yes, no]), [["a", 1, 0], ["b", 1, 0]]);
  assert.deepEqual(fits(result, [below(50)], () => "3"), []);
});
