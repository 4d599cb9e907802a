"""Blocks of C and CUDA: braces around lines, and how far lines are indented, which follows from the braces.

Printers of kernels yield lines that begin in the first column. ``indented`` moves them, once, at the end:

    for (...) {            for (...) {
    #pragma ...            #pragma ...
    x = 1;                     x = 1;
    }                      }
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ilang.codegen.targets.c_entry import several_a_line
from ilang.codegen.targets.cfamily import INDENT, WIDTH
from ilang.codegen.targets.marked_lines import MarkedLine
from ilang.core.ir.kernel import If

BREAKS = (
    ("; ",),
    (" ? ", " : "),
    (", ",),
    (" && ", " || "),
    (" + ", " - "),
    (" * ", " / "),
    (" = ", " += "),
)
"""Places where a longer line may go on in the next one, those first that are taken first."""
AFTER = ("; ", ", ", " = ", " += ")
"""Signs of these with which the longer line ends."""
RANKS = {sign: rank for rank, signs in enumerate(BREAKS) for sign in signs}
MARKS = re.compile(rf"[()\[\]]|(?=({'|'.join(map(re.escape, RANKS))})).")
"""A bracket, or the first letter of a sign; the next sign may begin with the last one of it."""
HEADS = ("for (", "if (")
WHOLE = ("\n", '"', "/*", "; }")
"""Lines that have one of these are broken already, or stay whole."""
FILL = "\v"
"""Stands between the words of a list that goes on in the next line where one is full."""

LEFT_SMALL = "#pragma GCC unroll 1"
"""Stands before a loop that becomes vector code: the iterations that vectors leave over stay a loop.

GCC writes each of them out else, which is a sixth of the time that a program of rows takes to compile.
"""


def braced(head: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines in braces after a head, which may be empty."""
    yield f"{head} {{" if head else "{"
    yield from lines
    yield "}"


def branches(condition: str, s: If, body: Iterable[str], otherwise: Iterable[str]) -> Iterator[str]:
    """The lines of a statement under a condition, and those where it does not hold."""
    if not s.body:
        yield from braced(f"if (!({condition}))", otherwise)
        return
    yield f"if ({condition}) {{"
    yield from body
    if s.otherwise:
        yield "} else {"
        yield from otherwise
    yield "}"


def filled(head: str, words: Sequence[str], tail: str) -> str:
    """A list in parentheses, of which a line will have as many words as fit."""
    return FILL.join((head, *words, tail))


def broken(line: str, more: str = INDENT) -> str:
    """A line of code that goes on in others where it is long: in as few brackets as can be."""
    start = len(line) - len(line.lstrip())
    if len(line) <= WIDTH or line.startswith("#") or any(each in line for each in WHOLE):
        return line
    ranks: dict[tuple[int, int], int] = {}
    depth = 0
    for mark in MARKS.finditer(line):
        at, letter, sign = mark.start(), mark[0], mark[1]
        if at >= WIDTH:
            break
        depth += (letter in "([") - (letter in ")]")
        if sign is not None:
            rank = RANKS[sign]
            if start + len(more) < at and (depth == 0 or rank < len(BREAKS) - 1):
                ranks[depth, rank] = at + (len(sign) if sign in AFTER else 1)
        elif (
            letter == ")"
            and depth == 0
            and line.startswith(HEADS, start)
            and line[at + 2 : at + 3] not in ("", "{")
        ):
            ranks[-1, 0] = ranks.get((-1, 0), at + 1)  # what is done, after the head
    if not ranks:
        return line
    first = min(ranks)
    at, further = ranks[first], INDENT if first[0] < 0 else ""
    return f"{line[:at].rstrip()}\n{broken(line[:start] + more + line[at:].lstrip(), further)}"


def indented(lines: Iterable[str], breaks: bool = True) -> Iterator[str]:
    """Lines of functions, each as far to the right as braces are open around it; those of the preprocessor are not.

    A line that is too long goes on in others where it ``breaks``.
    """
    depth = 0
    for line in lines:
        depth -= line.startswith("}")
        text = line if line.startswith("#") else INDENT * depth + line
        if FILL in line:
            head, *words, tail = text.split(FILL)
            text = several_a_line(head, words, tail)
        elif breaks:
            text = broken(text)
        yield MarkedLine.of(text, line.mark) if isinstance(line, MarkedLine) else text
        depth += line.endswith("{")
