import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { ahead, answerWords, countWords, list, lossWords } = await source("answer");

const FASTEST = { is: "is fastest", may: "may be fastest", tie: "tie for fastest", has: "takes", noun: "latency" };

const rank = (kind, ...systems) => ({ kind, systems, why: null, repeats_more: null });
const value = (system, text = "9 µs", isReliable = true) => ({ system, text, isReliable });
const words = (of) => answerWords(FASTEST, { rank: undefined, lead: null, where: "", values: [], ...of });

test("the winner is named with the least by which it leads", () => {
  assert.equal(words({ rank: rank("winner", "nanomsg"), lead: 1.4599, where: " over ipc" }), "nanomsg is fastest over ipc, by at least 45 %");
  assert.equal(words({ rank: rank("winner", "nanomsg"), lead: 5.69 }), "nanomsg is fastest, by at least 5.6×");
  assert.equal(words({ rank: rank("winner", "nanomsg") }), "nanomsg is fastest");
});

test("a lead is rounded down, and one of nothing is not said", () => {
  assert.deepEqual([null, 1, 1.0005, 1.0149, 1.099, 1.999, 2, 23.9, 135.7].map(ahead), ["", "", "", ", by at least 1.4 %", ", by at least 9.9 %", ", by at least 99 %", ", by at least 2.0×", ", by at least 23×", ", by at least 130×"]);
});

test("candidates, a tie and shares that differ have words of their own", () => {
  assert.equal(words({ rank: rank("open", "zeromq", "nanomsg") }), "zeromq or nanomsg may be fastest");
  assert.equal(words({ rank: rank("open", "a", "b", "c"), where: " over tcp" }), "a, b or c may be fastest over tcp");
  assert.equal(words({ rank: rank("open", "a", "b", "c", "d") }), "any of 4 systems may be fastest");
  assert.equal(words({ rank: rank("tie", "a", "b") }), "a and b tie for fastest");
  assert.equal(words({ rank: rank("unranked") }), "not comparable: each dropped a different share");
});

test("one that has no rival is said with its value, and nothing is said of what is unreliable", () => {
  assert.equal(words({ rank: rank("alone"), values: [value("mosquitto", "46.5 µs")], where: " at rate 1000" }), "mosquitto takes 46.5 µs at rate 1000");
  assert.equal(words({ rank: rank("alone"), values: [value("a"), value("b", "8 µs", false)] }), "only a has a reliable latency");
  assert.equal(words({ values: [value("a", "8 µs", false)] }), "no reliable latency");
  assert.equal(words({ rank: rank("open"), values: [value("a"), value("b")] }), "open: a or b may be fastest");
});

test("points are counted by winner, most first, and only where there are several", () => {
  const ranks = [rank("winner", "a"), rank("winner", "b"), rank("winner", "b"), rank("tie", "a", "b"), rank("open", "a", "b"), rank("unranked"), rank("alone"), undefined];
  assert.equal(countWords(ranks), "Best at 6 points: b 2, a 1, tie 1, open 1, not comparable 1");
  assert.equal(countWords([rank("winner", "a"), rank("alone")]), "");
  assert.equal(countWords(["a", "b", "c", "d", "e"].map((system) => rank("winner", system))), "Best at 5 points: a 1, b 1, c 1, others 2");
});

test("losses name those that lost, the worst of several", () => {
  assert.equal(lossWords([], 3, " over ipc"), "no message was lost over ipc");
  assert.equal(lossWords(["nng"], 3, ""), "only nng lost messages");
  assert.equal(lossWords(["nng", "zeromq"], 3, ""), "nng and zeromq lost messages, nng most");
  assert.equal(lossWords(["nng", "zeromq"], 2, ""), "every system lost messages, nng most");
  assert.equal(lossWords(["nng"], 1, ""), "nng lost messages");
});

test("names are cut and cannot turn the text round", () => {
  assert.ok(!list(["\u202Etxt.exe"], "or").includes("\u202E"));
  assert.ok(list(["x".repeat(300)], "or").length <= 24);
});
