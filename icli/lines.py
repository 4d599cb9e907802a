"""Lines of the REPL as text: the forms that they have, their words, and the brackets that they leave open."""

from __future__ import annotations

import re

from ilang.core.diagnostic import ModuleError, NotationError
from ilang.core.notation.lines import BEGINS_FUNCTION, marks, without_comments
from ilang.core.notation.reader import COMBINATORS, KNOWN, UNFINISHED
from ilang.core.source import Source, Span

WHERE = "<repl>"
UNREAD = ("E01", "E02", "E04", "E072")
"""Errors that a line may give only because it is in another spelling."""
DECIDED = ("E0270", "E0272", "E0426")
"""Errors of lines whose names are known, so that another spelling says nothing else."""
LONGEST = 1000
"""Code points of a line that is looked at for another spelling."""
LAST = "_"
"""The name of the last result."""
NAME = r"[A-Za-z_][A-Za-z0-9_]*"
BINDS = re.compile(rf"\s*({NAME}(?:\s*,\s*{NAME})*)\s*=(?![=>~])(.*)", re.DOTALL)
DEFINES = re.compile(rf"\s*({NAME})\s*\([^~=]*\)\s*=(?!=)", re.DOTALL)
CALLS = re.compile(rf"\s*({NAME})\s*\((.*)\)\s*", re.DOTALL)
GROUPED = re.compile(r"\s*\(\s*(-?\d[\w.+-]*)\s*\)\s*")
"""A number in parentheses, which is a constant to programs."""
HEAD = re.compile(
    r"\s*(?:(?P<array>\S.*)\.(?:shape|dtype)|(?:type|typeof|np\.shape|shape)\((?P<other>.*)\))\s*"
)
"""A question for the shape or the element type of an array."""
POSSIBLE = KNOWN | frozenset("[]{};")
"""Every character that a program or an array may hold."""
BRACKETS = {"(": ")", "[": "]", "{": "}"}
QUOTES = "\"'"


def split_words(text: str, separator: str = "") -> list[str]:
    """Words at blanks (or at a separator) outside brackets."""
    words, word, depth = [], "", 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if depth <= 0 and (c == separator if separator else c.isspace()):
            words.append(word.strip())
            word = ""
        else:
            word += c
    return [word for word in (*words, word.strip()) if word]


def goes_on(text: str) -> bool:
    """Whether a line needs another one: an open bracket, or a combinator at its end."""
    if text.endswith("\n") or text.lstrip().startswith(":"):
        return False
    if not "".join(text.split()).isprintable():  # an error whatever follows
        return False
    code = without_comments(text)
    is_function = BEGINS_FUNCTION.match(code.lstrip()) is not None
    if not is_function and not POSSIBLE.issuperset(code):
        return False
    end = code.rstrip()
    is_open = open_bracket(code) >= 0 or end.endswith(COMBINATORS)
    return is_open or (is_function and re.search(UNFINISHED, end) is not None)


def open_bracket(code: str) -> int:
    """The place of the last bracket that is never closed, or -1; ``code`` has no comments."""
    waiting: list[int] = []
    for at, c, _ in marks(code, 0, len(code)):
        if c in "([{":
            waiting.append(at)
        elif c in ")]}" and (not waiting or code[waiting.pop()] + c not in ("()", "[]", "{}")):
            return -1
    return waiting[-1] if waiting else -1


def mismatched_brackets(code: str) -> tuple[int, int] | None:
    """The places of a bracket and of one of another kind that closes it; None where there are none."""
    waiting: list[int] = []
    for at, c, _ in marks(code, 0, len(code)):
        if c in "([{":
            waiting.append(at)
        elif c in ")]}" and waiting and BRACKETS[code[opens := waiting.pop()]] != c:
            return opens, at
    return None


def closing(code: str) -> str:
    """The quotes and brackets that close what a text leaves open: ``")`` of ``einx.sum("a``."""
    waiting: list[str] = []
    before = ""
    for c in code:
        if c in waiting[-1:] or (c in QUOTES and c in waiting):
            del waiting[waiting.index(c) if c in QUOTES else -1 :]
        elif c in BRACKETS or c == '"' or (c == "'" and before == "("):
            waiting.append(BRACKETS.get(c, c))
        before = before if c.isspace() else c
    return "".join(reversed(waiting))


def refuse_open(line: str) -> None:
    """Refuse a line that ended inside a bracket, unless a character in it is the first trouble."""
    code = without_comments(line)
    at = open_bracket(code)
    if at >= 0 and POSSIBLE.issuperset(code):
        span = Span(Source(WHERE, line), at, at + 1)
        message = f"the `{line[at]}` on line {span.line_number()} is never closed"
        help_line = "close it, or begin a new line: a line goes on while a bracket is open"
        raise NotationError("E0110", message, span, help_line)


def array_in_program(span: Span) -> ModuleError:
    """The error for the name of an array inside a program."""
    return ModuleError(
        "E0401",
        f"`{span.text()}` is an array, and a component belongs here",
        span,
        help="apply a component by writing arrays after it: `+ij~i x`",
    )


def function_in_program(span: Span) -> ModuleError:
    """The error for the name of a tensor function, or of a routine, inside a program."""
    name = span.text()
    return ModuleError(
        "E0440",
        f"`{name}` is a tensor function or a routine, and a program is wired of components",
        span,
        help=f"apply a program to what it gives: `+ij~i ({name} x)`",
    )
