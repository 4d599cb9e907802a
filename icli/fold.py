"""Text folded for a terminal: what is too long for a line goes on below, further in, and nothing is lost.

    1  ik*kj~ijk  multiply over i j k       fused into 2, never stored

becomes, 40 columns wide:

    1  ik*kj~ijk  multiply over i j k
                  fused into 2, never stored

A line goes on where its last column of the left half begins, else four blanks further in than it began. A line is
broken at a blank, else after a sign, else anywhere. Codes that color count nothing.
"""

from __future__ import annotations

import functools
import re
import unicodedata

NARROWEST = 20
"""Columns of the narrowest terminal that text is folded for."""

FURTHER = 4
"""Blanks by which a line goes on further in, where it has no columns."""

CODE = re.compile(r"\x1b\[[0-9;]*m")
GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
SIGNS = frozenset(",;:)]}>=+-*/&|·")
"""Signs after which a word without blanks is broken."""

SOURCE = re.compile(r"( *[0-9]+ \| )(.*)", re.DOTALL)
MARKS = re.compile(r" *\| ( *)(\^+|-+)(.*)", re.DOTALL)


def fold(text: str, width: int) -> str:
    """The text in lines of at most ``width`` columns; a text that fits is the same text."""
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def fold_excerpts(diagnostic: str, width: int) -> str:
    """The plain text of a diagnostic whose quoted lines are in pieces that fit, each above its own marks."""
    lines = diagnostic.split("\n")
    folded: list[str] = []
    while lines:
        line = lines.pop(0)
        source = SOURCE.fullmatch(line)
        if source is None or not folded:
            folded.append(line)
            continue
        marks = []
        while lines and MARKS.fullmatch(lines[0]):
            marks.append(lines.pop(0))
        folded += _excerpt(source.group(1), source.group(2), marks, width)
    return "\n".join(folded)


def cells(text: str) -> int:
    """The columns that a text without codes takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_cell, text))


@functools.cache  # texts have many signs, and few that differ
def _cell(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _folded(line: str, width: int) -> str:
    if len(line) <= width and line.isascii():
        return line
    bare = CODE.sub("", line)
    if cells(bare) <= width:
        return line
    most = width // 2
    begin = len(bare) - len(bare.lstrip(" "))
    columns = [gap.end() for gap in GAP.finditer(bare) if cells(bare[: gap.end()]) <= most]
    hang = columns[-1] if columns else min(begin + FURTHER, most)
    at, left = begin, min(begin, most)
    pieces = []
    while True:
        end = _end(bare, at, width - left)
        pieces.append((left, at, end))
        at = end + len(bare[end:]) - len(bare[end:].lstrip(" "))
        if len(bare) <= at:
            return _joined(line, pieces)
        left = hang


def _end(bare: str, start: int, room: int) -> int:
    """The end of the piece that starts here and takes at most so many columns."""
    end = _within(bare, start, room)
    if end == len(bare) or bare[end] == " ":
        return end
    blank = bare.rfind(" ", start, end)
    if start <= blank and bare[start:blank].strip():
        return blank
    sign = next((at for at in range(end, start, -1) if bare[at - 1] in SIGNS), start)
    return sign if start < sign else max(end, start + 1)


def _within(bare: str, start: int, room: int) -> int:
    """The end of the longest piece that starts here and takes at most so many columns."""
    if bare.isascii():
        return min(start + room, len(bare))
    end, taken = start, 0
    while end < len(bare) and taken + _cell(bare[end]) <= room:
        taken += _cell(bare[end])
        end += 1
    return end


def _joined(line: str, pieces: list[tuple[int, int, int]]) -> str:
    """The pieces of a line, each after its blanks; codes stay before the character that they color."""
    if "\x1b" not in line:
        return "\n".join(" " * left + line[start:end].rstrip() for left, start, end in pieces)
    characters: list[str] = []
    codes = ""
    at = 0
    while at < len(line):
        code = CODE.match(line, at)
        if code is not None:
            codes += code.group()
            at = code.end()
        else:
            characters.append(codes + line[at])
            codes = ""
            at += 1
    lines = [" " * left + "".join(characters[start:end]).rstrip() for left, start, end in pieces]
    return "\n".join(lines) + codes


def _excerpt(gutter: str, quoted: str, marks: list[str], width: int) -> list[str]:
    """A quoted line in pieces, and below each the parts of the marks that belong to it."""
    room = width - len(gutter) - 1  # a mark may stand one past the end
    if cells(quoted) <= room:
        return [gutter + quoted, *marks]
    margin = " " * gutter.index("|") + "| "
    placed = [match for match in map(MARKS.fullmatch, marks) if match is not None]
    shown: list[str] = []
    at = column = 0
    while at < len(quoted):
        end = _end(quoted, at, room)
        last = end == len(quoted)
        past = column + cells(quoted[at:end])
        shown.append((margin if at else gutter) + quoted[at:end])
        for mark in placed:
            begin = len(mark.group(1))
            stop = begin + len(mark.group(2))
            first, final = max(begin, column), stop if last else min(stop, past)
            if first < final:
                label = mark.group(3) if final == stop else ""
                drawn = mark.group(2)[0] * (final - first)
                shown.append(f"{margin}{' ' * (first - column)}{drawn}{label}")
        at, column = end, past
    return shown
