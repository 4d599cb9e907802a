"""Diagnostics in color: the plain text, painted line by line."""

from __future__ import annotations

import re

BOLD, DIM, RED, GREEN, CYAN = "1", "2", "1;31", "1;32", "36"

HEADER = re.compile(r"(error\[E[0-9]{4}\])(: .*)", re.DOTALL)
PLACE = re.compile(r"( *--> )(.*)")
SOURCE = re.compile(r"( *[0-9]* \|)(.*)")
MARKS = re.compile(r"( *)((\^+|-+).*)")


def diagnostic_text(plain: str) -> str:
    """The text of a diagnostic with the codes that color it; without them it is the same text."""
    return "\n".join(_painted(line, number == 0) for number, line in enumerate(plain.split("\n")))


def _painted(line: str, first: bool) -> str:
    header = HEADER.fullmatch(line) if first else None
    if header is not None:
        return _in(RED, header.group(1)) + _in(BOLD, header.group(2))
    if line.startswith("help:"):
        return _in(GREEN, "help:") + line[len("help:") :]
    place = PLACE.fullmatch(line)
    if place is not None:
        return _in(DIM, place.group(1)) + place.group(2)
    source = SOURCE.fullmatch(line)
    if source is None:
        return line
    gutter, rest = source.groups()
    marks = None if re.search("[0-9]", gutter) else MARKS.fullmatch(rest)
    if marks is None:
        return _in(DIM, gutter) + rest
    blank, underlined, sign = marks.groups()
    return _in(DIM, gutter) + blank + _in(RED if "^" in sign else CYAN, underlined)


def _in(style: str, text: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if text else ""


AXIS_COLORS = ("cyan", "magenta", "yellow", "green", "blue", "red")
"""Colors of the terminal's own theme, so they suit light and dark ones; i, j, k take the first three."""


def axis_color(letter: str) -> str:
    """The color of an axis: neighbors in the alphabet differ."""
    return AXIS_COLORS[(ord(letter) - ord("i")) % len(AXIS_COLORS)]
