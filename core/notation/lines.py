"""The lines of a file: comments blanked, and where each definition, and each statement, begins and ends.

A line continues inside brackets, when it ends with ``>> << & |``, or when the next line that is not blank or comment
begins with one of these. A line that can only begin a definition ends one whose bracket was forgotten. Comments run
from ``#`` to the end of the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ilang.core.notation.reader import BLANKS, COMBINATORS, UNFINISHED, Reader

BEGINS_FUNCTION = re.compile(r"(op|cd)[ \t]+[A-Za-z_]", re.ASCII)
"""The beginning of the definition of a tensor function or a routine."""
BEGINS_HEAD = re.compile(r"(?:op|cd)[ \t]+[A-Za-z_]\w*[ \t]*\(", re.ASCII)
"""A line that no definition goes on with."""
BEGINS_COMPONENT = re.compile(r"[A-Za-z_]\w*[ \t]*\([^()~]*\)[ \t]*=(?!=)", re.ASCII)
"""A line that no component goes on with: an ``op`` may end with such a comparison."""
BYTE_ORDER_MARK = "\ufeff"


def without_comments(text: str) -> str:
    """The text with every comment, and a byte order mark, blanked; every other place is kept."""
    lines = text.split("\n")
    for n, line in enumerate(lines):
        at = comment_start(line)
        if at >= 0:
            lines[n] = line[:at] + " " * (len(line) - at)
    blanked = "\n".join(lines)
    return " " + blanked[1:] if blanked.startswith(BYTE_ORDER_MARK) else blanked


def comment_start(line: str) -> int:
    """The beginning of the comment of a line, or -1; a ``#`` inside ``i("...")`` begins none."""
    at = line.find("#")
    if at < 0 or ('"' not in line and "'" not in line):
        return at
    quote = ""
    for n, c in enumerate(line):
        if quote:
            quote = "" if c == quote else quote
        elif c == "#":
            return n
        elif c == '"' or (c == "'" and line[:n].rstrip(BLANKS).endswith("(")):
            quote = c
    return -1


def logical_lines(text: str) -> list[tuple[int, int]]:
    """Start and end of each definition, blanks around it left out; ``text`` has no comments."""
    bounds: list[tuple[int, int]] = []
    depth, continues, start = 0, False, 0
    is_function = False
    for line in text.split("\n"):
        code = line.strip(BLANKS)
        if code:
            begin = start + len(line) - len(line.lstrip(BLANKS))
            end = begin + len(code)
            overlaps = depth or continues or code.startswith(COMBINATORS)
            if bounds and overlaps and not _begins_anew(code, is_function):
                bounds[-1] = (bounds[-1][0], end)
            else:
                bounds.append((begin, end))
                is_function = BEGINS_FUNCTION.match(code) is not None
                depth = 0
            depth = _brackets(code, depth)
            continues = code.endswith(COMBINATORS)
            continues = continues or (is_function and re.search(UNFINISHED, code) is not None)
        start += len(line) + 1
    return bounds


def _begins_anew(line: str, in_function: bool) -> bool:
    """Whether a line begins a definition, however many brackets are open before it."""
    if BEGINS_HEAD.match(line):
        return True
    return not in_function and BEGINS_COMPONENT.match(line) is not None


def _brackets(line: str, depth: int) -> int:
    """The number of brackets that are open after a line."""
    if not any(c in line for c in "()[]{}"):
        return depth
    depths = [after for _, after in brackets(line, 0, len(line), depth)]
    return depths[-1] if depths else depth


def brackets(text: str, start: int, end: int, depth: int = 0) -> Iterator[tuple[int, int]]:
    """The place of every bracket outside of quotes, and how many brackets are open after it."""
    quote, last = "", ""
    for at in range(start, end):
        c = text[at]
        if quote:
            quote = "" if c == quote else quote
        elif c == '"' or (c == "'" and last == "("):
            quote = c
        elif c in "()[]{}":
            depth = depth + 1 if c in "([{" else max(0, depth - 1)
            yield at, depth
        last = c if c not in BLANKS else last


def divided(
    reader: Reader,
    close: int,
    *,
    by_lines: bool = True,
    overlaps: str = UNFINISHED,
    calls: bool = False,
) -> list[Reader]:
    """The text from the cursor to ``close``, divided by ``;``, and by lines; the ``;`` are taken.

    What ends as in ``overlaps`` goes on in the next line. With ``calls``, a quote may be single behind a parenthesis.
    """
    bounds: list[tuple[int, int]] = []
    begin, depth, quote = reader.pos, 0, ""
    for at in range(reader.pos, close + 1):
        c = reader.text[at]
        if quote:
            quote = "" if c == quote else quote
            continue
        quoted = calls and c == "'" and reader.text[begin:at].rstrip(BLANKS).endswith("(")
        quote = c if (c == '"' or quoted) and at < close else ""
        ends = at == close or (not depth and (c == ";" or (c == "\n" and by_lines)))
        depth += (c in "([{") - (c in ")]}")
        code = reader.text[begin:at].strip(BLANKS) if ends else ""
        if not ends or (c == "\n" and re.search(overlaps, code)):
            continue
        if code:
            first = reader.past(BLANKS, begin)
            bounds.append((first, first + len(code)))
        if c == ";" and at < close:
            reader.pos = at
            reader.take(at + 1, right=True)
        begin = at + 1
    reader.pos = close
    return [reader.part(first, end, "statement") for first, end in bounds]
