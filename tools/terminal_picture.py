#!/usr/bin/env python3
"""Draws the output of a command as SVG, light and dark: tools/terminal_picture.py OUT COMMAND...

Writes OUT-light.svg and OUT-dark.svg. The command runs on a terminal of 100 columns, so that it has its colours.
"""

import html
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl

COLUMNS = 100
FONT_PX, LINE_PX, MARGIN_PX = 13, 17, 14
# Width of a character of a monospaced font, as a share of its size.
ASPECT = 0.6
# Background, text, and the eight colours of ANSI.
THEMES = {
    "light": ("#ffffff", "#1f2328", "#1f2328 #b3261e #1a7f37 #8a6100 #0550ae #7d3cad #0b7285 #59636e".split()),
    "dark": ("#0d1117", "#e6edf3", "#8b949e #ff7b72 #3fb950 #d29922 #58a6ff #bc8cff #39c5cf #b1bac4".split()),
}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")
OTHER = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\r")


def output_of(command):
    """Returns what a command writes to a terminal."""
    leader, follower = pty.openpty()
    ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=subprocess.DEVNULL)
    os.close(follower)
    text = b""
    while True:
        try:
            piece = os.read(leader, 1 << 16)
        except OSError:
            break
        if not piece:
            break
        text += piece
    process.wait()
    return OTHER.sub("", text.decode())


def spans(line, style):
    """Yields (text, style) pieces of a line; a style is (colour or None, bold, dim)."""
    place = 0
    for found in ESCAPE.finditer(line):
        yield line[place : found.start()], style
        for code in (found[1] or "0").split(";"):
            colour, bold, dim = style
            number = int(code or 0)
            if number == 0:
                style = (None, False, False)
            elif number in (1, 2):
                style = (colour, bold or number == 1, dim or number == 2)
            elif 30 <= number <= 37 or 90 <= number <= 97:
                style = (number % 10, bold, dim)
        place = found.end()
    yield line[place:], style


def draw(lines, theme):
    """Returns the lines as SVG."""
    background, plain, colours = THEMES[theme]
    width = int(COLUMNS * FONT_PX * ASPECT) + 2 * MARGIN_PX
    height = len(lines) * LINE_PX + 2 * MARGIN_PX
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="100%" height="100%" rx="8" fill="{background}"/>',
        f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="{FONT_PX}" xml:space="preserve">',
    ]
    for row, line in enumerate(lines):
        column = 0
        for text, (colour, bold, dim) in spans(line, (None, False, False)):
            if text.strip():
                x, y = MARGIN_PX + column * FONT_PX * ASPECT, MARGIN_PX + (row + 0.75) * LINE_PX
                length = len(text) * FONT_PX * ASPECT
                look = f'fill="{colours[colour] if colour is not None else plain}"'
                look += ' font-weight="bold"' if bold else ""
                look += ' opacity="0.65"' if dim else ""
                out.append(f'<text x="{x:.1f}" y="{y:.1f}" textLength="{length:.1f}" {look}>{html.escape(text)}</text>')
            column += len(text)
    return "\n".join([*out, "</g>", "</svg>", ""])


def main():
    """Draws the output in both themes."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    lines = output_of(sys.argv[2:]).rstrip().split("\n")
    for theme in THEMES:
        with open(f"{sys.argv[1]}-{theme}.svg", "w", encoding="utf-8") as file:
            file.write(draw(lines, theme))


main()
