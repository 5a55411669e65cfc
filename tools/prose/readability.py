#!/usr/bin/env python3
"""Prints how readable each page is: words, words a sentence, Flesch reading ease.

Code blocks, tables and headings are removed, a code span is one word of one syllable. `python3
tools/prose/readability.py [--check] [PAGE …]`; with --check the exit code is 1 if a page is below 50 or above 20
words a sentence. Without pages it reads those that `make lint-prose` reads.
"""

import argparse
import glob
import re
import sys

PAGES = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**/*.md",
         "studies/*/README.md", "agents/*/README.md"]
LEAST_EASE, MOST_WORDS = 50, 20


def sentences(page):
    """The sentences of a page of Markdown, as lists of words.

    >>> sentences("# A title\\n\\nRun `make x`. It ends.\\n\\n- [one](two.md) item\\n  goes on\\n- another\\n\\n| a | b |\\n")
    [['Run', 'Code'], ['It', 'ends'], ['one', 'item', 'goes', 'on'], ['another']]
    >>> sentences("It ends. pubmark goes on. ")
    [['It', 'ends'], ['pubmark', 'goes', 'on']]
    >>> sentences("```sh\\nmake\\n```\\nAs e.g. here: 1.5 s, and so on.")
    [['As', 'e.g', 'here', '1.5', 's', 'and', 'so', 'on']]
    """
    text = re.sub(r"^( *)(```+|~~~+).*?^ *\2 *$", "\n", page, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^ *(\||#+ ).*$", "\n", text, flags=re.M)
    text = re.sub(r"(`+).+?\1", "Code", text, flags=re.S)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"https?://\S+", "Code", text)
    text = re.sub(r"^[ >]*([-*+]|\d+\.) ", "\n\n", text, flags=re.M)
    found = []
    for block in re.split(r"\n\s*\n", text):
        for sentence in re.split(r"(?<=[.!?])[\"”)*_]*\s+(?!(?!pubmark\b)[a-z])", block):
            words = re.findall(r"[^\W_](?:[\w.,'’/-]*\w)?", sentence)
            found += [words] if words else []
    return found


def syllables(word):
    """The syllables of an English word, roughly: its groups of vowels, without a silent e.

    >>> [syllables(word) for word in ["run", "measure", "table", "used", "wanted", "latency", "reliable", "1,000"]]
    [1, 2, 2, 1, 2, 3, 4, 1]
    """
    word = re.sub(r"(?<=[^aeiouy])le$", "el", word.lower())
    word = re.sub(r"(?<=[^aeiouy])e$|(?<=[^aeiouydt])ed$|(?<=[^aeiouycghsxz])es$", "", word)
    return max(1, len(re.findall(r"[aeiouy]+", re.sub(r"i(?=[aou])", "i-", word))))


def figures(found):
    """Words, words a sentence, and Flesch reading ease; nothing for a page without sentences.

    >>> figures([["The", "cat", "sat", "on", "the", "mat"]])
    (6, 6.0, 116.1)
    """
    words = [word for sentence in found for word in sentence]
    if not words:
        return 0, None, None
    length = len(words) / len(found)
    ease = 206.835 - 1.015 * length - 84.6 * sum(map(syllables, words)) / len(words)
    return len(words), round(length, 1), round(ease, 1)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--check", action="store_true", help="fail if a page is hard to read")
    arguments.add_argument("pages", nargs="*", metavar="PAGE")
    given = arguments.parse_args()
    pages = given.pages or sorted(path for pattern in PAGES for path in glob.glob(pattern, recursive=True))
    rows, everything = [], []
    for path in pages:
        with open(path, encoding="utf-8") as file:
            found = sentences(file.read())
        everything += found
        rows.append((path, *figures(found)))
    rows.append(("total", *figures(everything)))
    hard = [row for row in rows if row[1] and (row[3] < LEAST_EASE or row[2] > MOST_WORDS)]
    print(f"{'page':40} {'words':>7} {'words/sentence':>15} {'reading ease':>13}")
    for row in rows:
        path, words, length, ease = row
        print(f"{path:40} {words:7} {length or '-':>15} {ease or '-':>13}{'  hard' if row in hard else ''}")
    return 1 if given.check and hard else 0


if __name__ == "__main__":
    sys.exit(main())
