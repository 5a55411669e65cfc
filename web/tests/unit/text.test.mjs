import assert from "node:assert/strict";
import { test } from "node:test";
import { source } from "./source.mjs";

const { clean, cleanLines, csv, csvField, fileName, many } = await source("text");

test("what cannot be seen or turns text around is replaced", () => {
  assert.equal(clean("a\u0000b\u202ec\u2066d\u200be\nf\u009bg"), "a·b·c·d·e·f·g");
  assert.equal(clean("größer als 5 µs – 日本語"), "größer als 5 µs – 日本語");
  assert.equal(cleanLines("one\n\ttwo\r\u001b[31m"), "one\n\ttwo··[31m");
});

test("a long text is cut, never within a character", () => {
  assert.equal(clean("x".repeat(1_000_000), 10), `${"x".repeat(10)}…`);
  assert.equal(clean("12345", 5), "12345");
  // The 4th and 5th unit are the halves of one character.
  assert.equal(clean("abc😀def", 4), "abc…");
  assert.equal(clean("abc😀def", 5), "abc😀…");
});

test("a file's name leads nowhere and hides nothing", () => {
  assert.equal(fileName("../../etc/passwd", ".csv"), "etc-passwd.csv");
  assert.equal(fileName(".bashrc", ".json"), "bashrc.json");
  assert.equal(fileName("</script>\u202e", ".csv"), "script.csv");
  assert.equal(fileName("///", ".csv"), "pubmark.csv");
  assert.ok(fileName("y".repeat(5_000), ".csv").length < 100);
});

test("no text becomes a formula, and numbers stay numbers", () => {
  for (const text of ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"]) {
    assert.match(csvField(text).replaceAll('"', ""), /^'/, JSON.stringify(text));
  }
  assert.equal(csvField(-1.5), "-1.5");
  assert.equal(csvField("a=1"), "a=1");
});

test("separators, quotes and line ends are quoted", () => {
  assert.equal(csvField('say "a, b"'), '"say ""a, b"""');
  assert.equal(csvField("two\nlines"), '"two\nlines"');
  assert.equal(csvField('="x"'), '"\'=""x"""');
  assert.equal(csv([["a", null, undefined, 0, false], ["b,c"]]), 'a,,,0,false\n"b,c"\n');
});

test("counts agree with their noun", () => {
  assert.equal(many(1, "run"), "1 run");
  assert.equal(many(0, "run"), "0 runs");
  assert.equal(many(2_304, "run"), "2,304 runs");
});
