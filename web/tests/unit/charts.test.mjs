import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { knee } = await source("charts/knee");
const { scale, spansDecades, withMargin, nines, ninesLabel } = await source("charts/scale");
const { slices, loadAxes, wordAxes, amount, points } = await source("charts/slicing");
const { spread } = await source("charts/over");
const { csv, csvField } = await source("charts/table");
const { label } = await source("charts/clean");
const { square, mapAxes, squareWords, marginWords, publishedBest } = await source("charts/winners");
const { receivers } = await source("charts/receivers");
const { tick } = await source("charts/axes");
const { timePanels, spans } = await source("charts/timepanels");
const { kneePanels, marksOf } = await source("charts/knees");
const { fileName } = await source("charts/export");

const at = (load, more = {}) => ({ load, valid: true, ratio: 1, p99: 100, ...more });

test("the knee is the highest load before the first that fails, not the highest that holds", () => {
  const found = knee([at(4000), at(1000), at(2000, { p99: 5000 }), at(500)], null);
  assert.equal(found.load, 1000);
  assert.equal(found.bound, 1000);
  assert.deepEqual(found.stop, { load: 2000, why: "late" });
});

test("each way to miss the knee has its word", () => {
  assert.equal(knee([at(1), at(2, { valid: false })], null).stop.why, "unreliable");
  assert.equal(knee([at(1), at(2, { ratio: 0.9989 })], null).stop.why, "lossy");
  assert.equal(knee([at(1), at(2, { p99: null })], null).stop.why, "not measured");
  assert.equal(knee([at(1), at(2, { ratio: 0.999, p99: 1000 })], null).stop, null);
});

test("a bound that is given counts for the lowest load too", () => {
  const found = knee([at(1), at(2)], 99);
  assert.equal(found.load, null);
  assert.deepEqual(found.stop, { load: 1, why: "late" });
});

test("a load of which nothing may be said ends nothing that goes on above it", () => {
  assert.deepEqual(knee([at(1, { valid: false }), at(2), at(4, { p99: null }), at(8)], null), { load: 8, p99: 100, bound: 1000, stop: null });
  assert.deepEqual(knee([at(1), at(2, { valid: false }), at(4, { p99: 5000 })], null).stop, { load: 4, why: "late" });
});

test("without a p99 at any load nothing is said to be sustained", () => {
  assert.equal(knee([at(1, { p99: null }), at(2, { p99: null })], null).load, null);
  assert.equal(knee([], null).load, null);
});

test("an axis holds all its values, and its ticks are where its ends are", () => {
  for (const values of [[1, 9], [0.003, 7000], [5, 5], [0], [], [1e-9, 1e9], [999.9999, 1000.0001]]) {
    for (const log of [false, true]) {
      const axis = scale(values, log);
      assert.ok(axis.max > axis.min, `${values} ${log}`);
      for (const value of values.filter((value) => !log || value > 0)) {
        assert.ok(value >= axis.min * (1 - 1e-9) && value <= axis.max * (1 + 1e-9), `${value} in ${axis.min} to ${axis.max}`);
      }
      assert.ok(axis.ticks.length <= 24, `${axis.ticks.length} ticks`);
      for (const tick of axis.ticks) assert.ok(tick >= axis.min && tick <= axis.max);
    }
  }
});

test("a linear axis begins at zero and has round ticks", () => {
  assert.deepEqual(scale([130, 470], false).ticks, [0, 100, 200, 300, 400, 500]);
  assert.deepEqual(scale([0.1, 0.3], false).ticks, [0, 0.1, 0.2, 0.3]);
});

test("a logarithmic axis of two decades is labelled at 1, 2 and 5", () => {
  assert.deepEqual(scale([12, 480], true).ticks, [10, 20, 50, 100, 200, 500]);
});

test("zero and less have no place on a logarithmic axis and do not stretch it", () => {
  const axis = scale([0, -5, 20, 40], true);
  assert.equal(axis.min, 20);
});

test("values that span a decade and a half ask for a logarithmic axis", () => {
  assert.equal(spansDecades([1, 31]), false);
  assert.equal(spansDecades([1, 32]), true);
  assert.equal(spansDecades([0, 5]), false);
});

test("a margin makes room at both ends, on either kind of axis", () => {
  const axis = withMargin(scale([10, 1000], true), 10, 1000);
  assert.ok(axis.min < 10 && axis.max > 1000);
  const single = withMargin(scale([5], false), 5, 5);
  assert.ok(single.min < 5 && single.max > 5);
});

test("nines have the same room each", () => {
  assert.equal(nines(0), 0);
  assert.ok(Math.abs(nines(0.999) - 3) < 1e-9);
  assert.deepEqual([0, nines(0.5), 1, 2, 3, 5].map(ninesLabel), ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.999 %"]);
});

const axis = (name, values, numeric = true) => ({ name, label: name, numeric, values: values.map((value) => ({ value, label: String(value) })) });
const cell = (axes, more = {}) => ({ axes, system: axes.system ?? "a", status: "valid", figures: {}, pattern: "pairs", point: 0, ...more });
const chosen = (state) => (name) => state[name] ?? "";

test("a slice takes the value with the most to show, the middle one of several", () => {
  const axes = [axis("payload", [1, 2, 3])];
  const cells = [1, 2, 3].map((payload) => cell({ payload }));
  assert.equal(slices(cells, axes, new Set(), chosen({}), () => 1).slices[0].chosen, "2");
  const use = ({ axes }) => (axes.payload === 3 ? 2 : 1);
  assert.equal(slices(cells, axes, new Set(), chosen({}), use).slices[0].chosen, "3");
});

test("what was chosen counts, unless it is not there", () => {
  const axes = [axis("payload", [1, 2])];
  const cells = [1, 2].map((payload) => cell({ payload }));
  assert.equal(slices(cells, axes, new Set(), chosen({ payload: "1" }), () => 1).cells.length, 1);
  assert.equal(slices(cells, axes, new Set(), chosen({ payload: "77" }), () => 1).slices[0].chosen, "1");
});

test("the part is chosen first, and only the axes of that part are asked for", () => {
  const axes = [axis("pairs", [10, 20]), axis("subscribers", [1, 2]), axis("part", ["x", "y"], false)];
  const cells = [cell({ part: "x", pairs: 10 }), cell({ part: "x", pairs: 20 }), cell({ part: "y", subscribers: 1 }), cell({ part: "y", subscribers: 2 })];
  const found = slices(cells, axes, new Set(), chosen({ part: "y" }), () => 1);
  assert.deepEqual(found.slices.map(({ axis }) => axis.name), ["part", "subscribers"]);
  assert.equal(found.cells.length, 1);
});

test("an axis that the chart uses is not cut", () => {
  const axes = [axis("payload", [1, 2])];
  const cells = [1, 2].map((payload) => cell({ payload }));
  assert.equal(slices(cells, axes, new Set(["payload"]), chosen({}), () => 1).cells.length, 2);
});

test("the horizontal axis is the one that raises the load; `max` is not a number", () => {
  const axes = [axis("payload", ["1KiB", "2KiB"]), axis("pairs", [1, 2]), axis("rate", [1000, "max"])];
  const cells = ["1KiB", "2KiB"].flatMap((payload) => [1, 2].flatMap((pairs) => [1000, "max"].map((rate) => cell({ payload, pairs, rate }))));
  assert.deepEqual(loadAxes(cells, axes).map(({ name }) => name), ["pairs", "payload"]);
  assert.deepEqual(points(axes[0], cells).map(({ amount }) => amount), [1024, 2048]);
});

test("sizes and times come to numbers, other words to nothing", () => {
  assert.equal(amount("32KiB"), 32768);
  assert.equal(amount("1KB"), 1000);
  assert.equal(amount("5ms"), 5e6);
  assert.equal(amount("1.5 s"), 1.5e9);
  for (const word of ["max", "", "5 constructor", "-3", "1e400x", true, undefined]) assert.equal(amount(word), null, String(word));
});

test("a table as CSV keeps its shape and runs no formula", () => {
  assert.equal(csvField('=HYPERLINK("x")'), '"\'=HYPERLINK(""x"")"');
  for (const start of ["+", "-", "@", "\t"]) assert.match(csvField(`${start}1`), /^'/);
  const text = csv({ columns: ["a", "b"], rows: [["x,\ny", { text: "5 µs", value: 5000, unit: "ns" }], ["z", { text: "–", value: null, unit: "ns" }]] });
  assert.equal(text, 'a,"b, ns"\r\n"x,\ny",5000\r\nz,\r\n');
});

test("a label shows no control and no turning characters, and is cut", () => {
  assert.equal(label("a\u202eb\u0000c"), "a\ufffdb\ufffdc");
  assert.equal([...label("😀".repeat(1e6))].length, 40);
  assert.equal(label("</script>"), "</script>");
});

test("file names are letters, digits and hyphens, never empty", () => {
  assert.equal(fileName("../../etc/passwd", "load"), "etc-passwd-load");
  assert.equal(fileName("\u0000", "…"), "chart");
});

test("ticks carry no idle zeros and lose no others", () => {
  assert.deepEqual([1e7, 2.5e7, 1e9, 100].map((ns) => tick(ns, "ns")), ["10 ms", "25 ms", "1 s", "100 ns"]);
  assert.equal(tick(0.05, "cores"), "0.05");
  assert.equal(tick(200_000, "per_s"), "200k/s");
});

const figure = { key: "latency_p50_ns", label: "latency p50", unit: "ns", better: "lower", about: "" };
const valid = (system, value) => cell({ system }, { figures: { latency_p50_ns: [value, null, null] } });
const study = (cells, ranks) => ({
  systems: [{ name: "a", kind: "broker" }, { name: "b", kind: "broker" }, { name: "kernel", kind: "reference" }],
  cells, points: [{ axes: {}, label: "", cells: cells.map((_, i) => i), floor: null, ranks }],
});

test("a winner's margin is to the best valid competitor, not to the floor", () => {
  const ranks = { latency_p50_ns: { kind: "winner", systems: ["a"], why: null } };
  const found = square(study([valid("a", 100), valid("b", 150), valid("kernel", 10)], ranks), 0, figure);
  assert.equal(found.margin, 0.5);
  const alone = square(study([valid("a", 100), { ...valid("b", 150), status: "invalid" }], ranks), 0, figure);
  assert.equal(alone.margin, null);
});

test("the published best is that of the figure's better direction, among two systems at least", () => {
  const values = (figure, ...values) => values.map(([cell, value]) => ({ cell, figure, value, note: null }));
  const found = (values, better = "lower") => publishedBest({ ...study([valid("a", 1), valid("b", 1), valid("kernel", 1)], {}), reference: { source: "s", values } }, 0, { ...figure, better });
  assert.equal(found(values("latency_p50_ns", [0, 30], [1, 20], [2, 1])), "b");
  assert.equal(found(values("latency_p50_ns", [0, 30], [1, 20]), "higher"), "a");
  assert.equal(found(values("latency_p50_ns", [0, 30], [2, 1])), null);
  assert.equal(found(values("latency_p99_ns", [0, 30], [1, 20])), null);
});

test("a square without a rank says why, and is never a winner", () => {
  const none = (status, more = {}) => square(study([cell({ system: "a" }, { status, ...more }), valid("kernel", 1)], {}), 0, figure);
  assert.equal(none("invalid").kind, "invalid");
  assert.equal(none("failed").kind, "failed");
  assert.equal(none("missing").kind, "missing");
  assert.match(squareWords(none("skipped", { skipped: "too large" })), /skipped: too large/);
  assert.equal(none("valid").kind, "none");
});

test("a point is open where somebody has a figure; where nobody has, the reason is shown", () => {
  const ranks = { latency_p50_ns: { kind: "open", systems: [], why: "fewer than two" } };
  const invalid = { ...valid("b", 150), status: "invalid" };
  assert.equal(square(study([valid("a", 100), invalid], ranks), 0, figure).kind, "open");
  assert.equal(square(study([{ ...invalid, system: "a" }, invalid, valid("kernel", 10)], ranks), 0, figure).kind, "invalid");
});

test("the map lies over payload and subscribers where both vary", () => {
  const axes = [axis("rate", [1, 2, 3]), axis("payload", ["1KiB", "2KiB"]), axis("subscribers", [1, 2])];
  const cells = [1, 2, 3].flatMap((rate) => ["1KiB", "2KiB"].flatMap((payload) => [1, 2].map((subscribers) => cell({ rate, payload, subscribers }))));
  const names = ({ x, y }) => [x?.name, y?.name];
  assert.deepEqual(names(mapAxes(cells, axes, "", "")), ["payload", "subscribers"]);
  assert.deepEqual(names(mapAxes(cells, axes, "rate", "")), ["rate", "payload"]);
  assert.deepEqual(names(mapAxes(cells, axes, "", "payload")), ["subscribers", "payload"]);
  assert.deepEqual(names(mapAxes(cells, axes, "rate", "rate")), ["rate", "payload"]);
  assert.deepEqual(names(mapAxes(cells.slice(0, 1), axes, "", "")), [undefined, undefined]);
});

test("margins never round to nothing", () => {
  assert.deepEqual([0.001, 0.12, 1, 2.44].map(marginWords), ["<1 %", "12 %", "2.0×", "3.4×"]);
});

test("receivers of a message: by pattern, by axis, else by what arrived", () => {
  const fan = cell({ subscribers: 8 }, { pattern: "fan-out" });
  assert.equal(receivers(cell({}, { pattern: "fan-in" }), []), 1);
  assert.equal(receivers(fan, []), 8);
  const seen = (delivered, ratio) => cell({}, { pattern: "tree", figures: { delivered_per_s: [delivered], delivered_ratio: [ratio], sent_per_s: [100] } });
  assert.equal(receivers(seen(10, 0.1), [seen(10, 0.1), seen(395, 1)]), 4);
  assert.equal(receivers(cell({}, { pattern: "tree" }), []), null);
});

const run = (more = {}) => ({
  window_ns: 2e9, fault_log: [], phases: { warmup_ns: 1e9, window_ns: 2e9, drain_ns: 0 }, usage_series: null,
  series: { slice_ns: 5e8, sent: [50, 50], delivered: [50, 0], latency_p50_ns: [100, 0], latency_p99_ns: [200, 0], latency_max_ns: [300, 0] },
  ...more,
});

test("a slice without an arrival has a rate of nothing and no latency", () => {
  const [messages, latency] = timePanels(run());
  assert.deepEqual(messages.traces[1].points, [[0.25, 100], [0.75, 0]]);
  assert.deepEqual(latency.traces[0].points, [[0.25, 100], [0.75, null]]);
});

test("consumer lag is that at the end of a slice, and left out where nothing waits", () => {
  const lag = (values) => timePanels(run({ series: { ...run().series, lag: values } })).find(({ name }) => name === "consumer lag");
  assert.deepEqual(lag([0, 50]).traces[0].points, [[0.5, 0], [1, 50]]);
  assert.deepEqual([lag([0, 0]), lag([])], [undefined, undefined]);
});

test("panels without data are left out, for old records and for libraries", () => {
  assert.deepEqual(timePanels(run()).map(({ name }) => name), ["messages", "latency"]);
  const usage_series = { start_ns: -1e9, slice_ns: 1e9, server: null, generator: { cpu_cores: [0.5, 0.6], rss_bytes: [1, 2] } };
  const panels = timePanels(run({ usage_series }));
  assert.deepEqual(panels.map(({ traces }) => traces.map(({ name }) => name).join()), ["sent,delivered", "p50,p99,max", "generator", "generator"]);
  assert.equal(panels[2].traces[0].points[0][0], -0.5);
});

test("faults that never happened are not drawn; one that never ended is an instant", () => {
  const fault = { what: "kill", who: "server", note: null };
  const found = spans(run({ fault_log: [{ ...fault, at_ns: null, until_ns: null }, { ...fault, at_ns: 1e9, until_ns: null }] }));
  assert.deepEqual(found, [{ name: "warm-up", from: -1, to: 0, kind: "phase" }, { name: "kill server", from: 1, to: 1, kind: "fault" }]);
  assert.deepEqual(spans(run({ phases: null })), []);
});

const step = (outcome, more = {}) => ({ cell: 3, load: 100, outcome, counts: true, confirms: false, why: "p99 < 1ms: it was 2 ms", window_s: 4, offered_per_s: 100, delivered_per_s: 99, p50_ns: 1, p99_ns: 2, server_cpu_cores: null, server_rss_bytes: null, ...more });

test("a step's mark says by its shape whether the objective held", () => {
  const steps = [step("held"), step("failed"), step("disturbed", { counts: false }), step("disturbed"), step("generator"), step("held", { confirms: true })];
  const marks = marksOf({ steps, curve: [] });
  assert.deepEqual(marks.map(({ shape }) => shape), ["held", "failed", "none", "failed", "failed", "held"]);
  assert.deepEqual([marks[0].said, marks[1].said, marks[5].said], ["held", "failed: p99 < 1ms: it was 2 ms", "held, at full length"]);
  assert.match(marks[2].said, /repeated: p99/);
  assert.deepEqual(marks.map(({ confirms }) => confirms), [false, false, false, false, false, true]);
});

test("where steps are too many, a mark stands for those at a load", () => {
  const load = (held, counted) => ({ ...step("held"), held, counted });
  const marks = marksOf({ steps: [], curve: [load(3, 3), load(0, 2), load(1, 3), load(0, 0)] });
  assert.deepEqual(marks.map(({ shape }) => shape), ["held", "failed", "mixed", "none"]);
  assert.equal(marks[2].said, "held in 1 of 3 steps");
  assert.ok(marks.every(({ cell }) => cell === null));
});

test("a search has the panels that it has figures for", () => {
  const names = (curve) => kneePanels({ curve }).map(({ lines }) => lines.map(({ key }) => key).join());
  assert.deepEqual(names([step("held")]), ["delivered_per_s,offered_per_s", "p99_ns,p50_ns"]);
  assert.deepEqual(names([step("held", { p99_ns: null, server_cpu_cores: 0.5, server_rss_bytes: 1 })]), ["delivered_per_s,offered_per_s", "server_cpu_cores", "server_rss_bytes"]);
});

test("axes of words can be drawn over where they vary, and numbers stay with the others", () => {
  const axis = (name, ...values) => ({ name, label: name, numeric: false, values: values.map((value) => ({ value, label: String(value) })) });
  const axes = [axis("transport", "tcp", "ipc"), axis("rate", 1000, 2000), axis("qos", 1), axis("persistent", true, false)];
  const cells = [{ axes: { transport: "tcp", rate: 1000, qos: 1, persistent: true } }, { axes: { transport: "ipc", rate: 2000, qos: 1, persistent: false } }];
  assert.deepEqual(wordAxes(cells, axes).map(({ name }) => name), ["transport", "persistent"]);
  assert.deepEqual(wordAxes(cells.slice(1), axes), []);
});

test("a spread is the median with bars from the least latency to p95, and nothing where one is missing", () => {
  const figures = { latency_min_ns: [5, 4, 6], latency_p50_ns: [20, 18, 22], latency_p95_ns: [90, 80, 99] };
  assert.deepEqual(spread({ figures }), [20, 5, 90]);
  assert.equal(spread({ figures: { ...figures, latency_p95_ns: undefined } }), null);
  assert.equal(spread({ figures: {} }), null);
});
