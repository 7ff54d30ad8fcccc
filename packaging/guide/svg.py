#!/usr/bin/env python3
"""svg.py <SCREEN >PICTURE: writes a screen with its colours (tmux capture-pane -p -e) as an SVG."""
import re
import sys
from html import escape

WIDTH, HEIGHT, BACK, FRONT = 8.4, 18, "#1d2021", "#ddd5c0"
COLOURS = ["#504945", "#fb4934", "#8ec07c", "#fabd2f", "#83a5cd", "#d3869b", "#7fb8b0", "#ddd5c0"]


def take(words, look):
    """The look after an escape sequence, which is SGR: tmux writes no others."""
    for word in [int(word or 0) for word in words.split(";")]:
        if word == 0:
            look = {"colour": FRONT, "back": None, "bold": False, "reverse": False}
        elif word in (1, 7):
            look = dict(look, **{"bold" if word == 1 else "reverse": True})
        elif 30 <= word <= 37 or word == 39:
            look = dict(look, colour=FRONT if word == 39 else COLOURS[word - 30])
        elif 40 <= word <= 47 or word == 49:
            look = dict(look, back=None if word == 49 else COLOURS[word - 40])
    return look


def parts(line, look):
    """(text, look) of each part of a line; at the end (None, look)."""
    at = 0
    for found in re.finditer(r"\x1b\[([0-9;]*)m|\x1b[()].", line):
        if found.start() > at:
            yield line[at:found.start()], look
        look = take(found.group(1) or "", look) if found.group(0)[1] == "[" else look
        at = found.end()
    if at < len(line):
        yield line[at:], look
    yield None, look


def main():
    lines = sys.stdin.read().rstrip("\n").split("\n")
    columns = max(len(re.sub(r"\x1b\[[0-9;]*m|\x1b[()].", "", line)) for line in lines)
    look = take("0", {})
    print('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" font-size="14">'
          % (columns * WIDTH + 16, len(lines) * HEIGHT + 16))
    print('<rect width="100%%" height="100%%" fill="%s"/>' % BACK)
    for row, line in enumerate(lines):
        column = 0
        for text, look in parts(line, look):
            if text is None:
                continue
            front, back = look["colour"], look["back"]
            if look["reverse"]:
                front, back = back or BACK, front
            left, top, wide = 8 + column * WIDTH, 8 + row * HEIGHT, len(text) * WIDTH
            column += len(text)
            if back:
                print('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>' % (left, top, wide, HEIGHT, back))
            if text.strip():
                print('<text x="%.1f" y="%d" textLength="%.1f" fill="%s"%s xml:space="preserve">%s</text>'
                      % (left, top + 14, wide, front, ' font-weight="bold"' if look["bold"] else "", escape(text)))
    print("</svg>")


if __name__ == "__main__":
    main()
