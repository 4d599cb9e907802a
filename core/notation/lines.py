"""The lines of a file: comments blanked, and where each definition, and each statement, begins and ends.

A line continues inside brackets, when it ends with ``>> << & |``, or when the next line that is not blank or comment
begins with one of these. A line that can only begin a definition ends one whose bracket was forgotten. Comments run
from ``#`` to the end of the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ilang.core.diagnostic import Error, keep
from ilang.core.notation.reader import BLANKS, COMBINATORS, UNFINISHED, Reader, unclosed

BEGINS_FUNCTION = re.compile(r"(op|cd)[ \t]+[A-Za-z_]", re.ASCII)
"""The beginning of the definition of a tensor function or a routine."""
BEGINS_HEAD = re.compile(r"(?:op|cd)[ \t]+[A-Za-z_]\w*[ \t]*\(", re.ASCII)
"""A line that no definition goes on with."""
BEGINS_COMPONENT = re.compile(r"[A-Za-z_]\w*[ \t]*\([^()~]*\)[ \t]*=(?!=)", re.ASCII)
"""A line that no component goes on with: an ``op`` may end with such a comparison."""
MARKS = re.compile(rf"""[]\[{{}});,#\n]|\([{BLANKS}]*+(?:'[^']*+'?)?|"[^"]*+"?""")
"""Characters that divide a text, and quotes; single ones follow a parenthesis."""
BLOCKS = re.compile(r"(?:for|if)\b")
"""The beginning of a statement that ends with a brace."""
NEXT = re.compile(rf"[{BLANKS}]*(?!else\b)(?:\w|\"|~~)")
"""The beginning of a statement after another one: a word, a string or a comment. Operators go on with a condition."""
BYTE_ORDER_MARK = "\ufeff"
Part = TypeVar("Part")
Result = TypeVar("Result")


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
    if "#" not in line:
        return -1
    return next((at for at, c, _ in marks(line, 0, len(line)) if c == "#"), -1)


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
            for *_, after in marks(code, 0, len(code), depth):
                depth = after
            continues = code.endswith(COMBINATORS)
            continues = continues or (is_function and re.search(UNFINISHED, code) is not None)
        start += len(line) + 1
    return bounds


def _begins_anew(line: str, in_function: bool) -> bool:
    """Whether a line begins a definition, however many brackets are open before it."""
    if BEGINS_HEAD.match(line):
        return True
    return not in_function and BEGINS_COMPONENT.match(line) is not None


def marks(text: str, start: int, end: int, depth: int = 0) -> Iterator[tuple[int, str, int]]:
    """Characters that divide a text outside of quotes: place, character, and how many brackets are open after it."""
    for mark in MARKS.finditer(text, start, end):
        c = text[mark.start()]
        if c != '"':
            depth = max(0, depth + (c in "([{") - (c in ")]}"))
            yield mark.start(), c, depth


def past_bracket(reader: Reader, start: int) -> int:
    """Past the bracket that closes the one at ``start``; -1 if none does."""
    ahead = marks(reader.text, start, reader.end)
    return next((at + 1 for at, _, depth in ahead if not depth), -1)


def statements(reader: Reader, help_line: str = "", overlaps: str = UNFINISHED) -> list[Reader]:
    """The statements of the block at the cursor, a reader each; the cursor then stands after it.

    Raises:
        NotationError: E0110.
    """
    close = past_bracket(reader, reader.pos) - 1
    brace = reader.take(reader.pos + 1, left=True, right=True)
    if close < 0:
        raise unclosed(brace, help_line)
    parts = divided(reader, close, overlaps=overlaps)
    reader.take(close + 1, left=True)
    return parts


def collected(
    parts: Iterable[Part], read: Callable[[Part], Result], refused: list[Error]
) -> list[Result]:
    """The results of reading each part; errors of parts that are refused go to ``refused``."""
    results: list[Result] = []
    for part in parts:
        try:
            results.append(read(part))
        except Error as error:
            keep(refused, error)
    return results


def divided(
    reader: Reader, close: int, *, by_lines: bool = True, overlaps: str = UNFINISHED
) -> list[Reader]:
    """The text from the cursor to ``close``, divided by ``;``, and by lines; the ``;`` are taken.

    What ends as in ``overlaps`` goes on in the next line. The brace of a ``for`` or an ``if`` ends it, too.
    """
    parts: list[Reader] = []
    begin = reader.pos
    for at, c, depth in (*marks(reader.text, begin, close), (close, "", 0)):
        if depth:
            continue
        closes = c == "}" and _ends_with_brace(reader, reader.past(BLANKS, begin), at + 1)
        if not closes and c not in (";\n" if by_lines else ";"):
            continue
        code = reader.text[begin : at + closes].strip(BLANKS)
        if c == "\n" and re.search(overlaps, code):
            continue
        if code:
            first = reader.past(BLANKS, begin)
            parts.append(reader.part(first, first + len(code), "statement"))
        if c == ";":
            reader.pos = at
            reader.take(at + 1, right=True)
        begin = at + 1
    reader.pos = close
    return parts


def _ends_with_brace(reader: Reader, start: int, end: int) -> bool:
    """Whether a statement ends with the brace before ``end``: one of ``for`` or ``if``, where another one follows."""
    return reader.matches(BLOCKS, start) is not None and reader.matches(NEXT, end) is not None
