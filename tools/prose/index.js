// The house rules of textlint: words to avoid (vocabulary.json), and long sentences.

/** Replaces code and link targets by filler of the same length: offsets stay those of the source. */
function mask(source) {
  const filled = (match) => "X".repeat(match.length);
  const blank = (match) => " ".repeat(match.length);
  return source
    .replace(/\n/g, " ")
    .replace(/(`+)[^`]+\1/g, filled)
    .replace(/\]\([^)]*\)|<[^>]*>|\|/g, blank);
}

/** Returns `{ start, text }` of each sentence. A small letter begins none, but in "pubmark". */
function sentences(source) {
  const found = [];
  let start = 0;
  for (const piece of mask(source).split(/(?<=[.!?]["”)*]* )(?! *(?!pubmark\b)[a-z])/)) {
    const text = piece.trim();
    if (text) found.push({ start: start + piece.indexOf(text), text });
    start += piece.length;
  }
  return found;
}

const entries = require("./vocabulary.json").map(({ avoid, flags = "i", use, example }) => {
  const pattern = new RegExp(avoid, flags + "g");
  if (example.search(pattern) < 0) throw new Error(`vocabulary.json: ${avoid} does not match its example`);
  return { pattern, use };
});

/** Reports what vocabulary.json advises against. In pages listed in `help`, code blocks are output of the program. */
function vocabulary({ Syntax, RuleError, report, getSource, getFilePath, locator }, options) {
  const look = (node, pieces) => {
    for (const { start, text } of pieces) {
      for (const { pattern, use } of entries) {
        for (const { 0: match, index } of text.matchAll(pattern)) {
          const shown = match.length > 40 ? match.slice(0, 40) + "…" : match;
          const padding = locator.range([start + index, start + index + match.length]);
          report(node, new RuleError(`"${shown}": write ${use}`, { padding }));
        }
      }
    }
  };
  const prose = (node) => look(node, sentences(getSource(node)));
  const isHelp = (options.help ?? []).some((page) => getFilePath()?.endsWith(page));
  const help = (node) => isHelp && look(node, [{ start: 0, text: getSource(node).replace(/\s/g, " ") }]);
  return {
    [Syntax.Paragraph]: prose,
    [Syntax.Header]: prose,
    [Syntax.TableCell]: prose,
    [Syntax.CodeBlock]: help,
  };
}

/** Reports sentences of more than `max` words. */
function sentenceLength({ Syntax, RuleError, report, getSource, locator }, { max }) {
  return {
    [Syntax.Paragraph](node) {
      for (const { start, text } of sentences(getSource(node))) {
        const words = text.split(/ +/).filter((word) => /\w/.test(word)).length;
        const padding = locator.range([start, start + text.length]);
        if (words > max) report(node, new RuleError(`a sentence of ${words} words: at most ${max}`, { padding }));
      }
    },
  };
}

module.exports = { rules: { vocabulary, "sentence-length": sentenceLength }, rulesConfig: {} };
