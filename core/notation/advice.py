"""The help line of a refused program, out of the part of it that was refused."""

from __future__ import annotations

import re
from collections.abc import Callable

from ilang.core.diagnostic import Error
from ilang.core.notation.guidance import resembling, spelled
from ilang.core.notation.reader import Reader
from ilang.core.source import Source

ADVISED = ("E0102", "E0103", "E0104", "E0105", "E0106", "E0109", "E0401")
"""Refusals that a spelling of another system may have caused."""
WIRE = re.compile(
    r"\s*(?:>>|<<|\|>|\||&)\s+|\s*(?:\|>|>>|<<)\s*(?=[A-Za-z_])|\s+[;,]\s+|\s(?:-+>|=>|[-+*/<>])\s+(?=[-+*/^$><]\w)"
)
"""The text between the components of a program."""
CALLED = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
SUGGESTED = re.compile("`([^`]*)`")
SURE = ("did you mean", "`use ", "an operation stands in quotes")
"""Beginnings of help than which no spelling of another system is better."""


def advised(error: Error, reader: Reader, start: int, parse: Callable[[Source], object]) -> Error:
    """The same error with the best help that the text from ``start`` on gives, out of programs that can be parsed."""
    if error.code not in ADVISED or error.span is None or (error.help or "").startswith(SURE):
        return error
    if any(ord(c) > 127 and c != "→" for c in error.span.text()):
        return error
    unknown = error.span.text() if error.code == "E0401" else None
    help_line = _of_part(reader, start, error.span.start, unknown, parse)
    if help_line is None:
        return error
    return error.with_help(help_line)


def _of_part(
    reader: Reader, start: int, at: int, unknown: str | None, parse: Callable[[Source], object]
) -> str | None:
    """Help for the whole text, or else for the component of it at a place."""
    text = reader.text[start : reader.end]
    begin, end = 0, len(text)
    for wire in WIRE.finditer(text):
        if wire.end() <= at - start:
            begin = wire.end()
        else:
            end = wire.start()
            break
    for part in (text, _unwrapped(text[begin:end])):
        called = CALLED.match(part)
        if unknown is not None and called is not None and called[1] != unknown:
            continue  # what is called is known
        help_line = spelled(part, unknown)
        if help_line is not None and _reads(help_line, parse):
            return help_line
    return None if unknown is None else resembling(unknown)


def _unwrapped(text: str) -> str:
    """A part of a program without the parentheses that it shares with other parts."""
    while text.startswith(("(", "~")) and (text[0] == "~" or text.count("(") > text.count(")")):
        text = text[1:]
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1]
    return text


def _reads(help_line: str, parse: Callable[[Source], object]) -> bool:
    """Whether every program that a help line shows can be read."""
    for program in SUGGESTED.findall(help_line):
        if "~" not in program:
            continue
        try:
            parse(Source("<help>", program))
        except Error:
            return False
    return True
