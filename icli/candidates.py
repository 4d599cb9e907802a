"""Words that may follow in a text that is typed: those of the language, and of its libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ilang.core.einx_ops import EINX_OPS
from ilang.core.ir.primitives import PRIMITIVES
from ilang.core.library import INNER, LIBRARIES, STD
from ilang.core.notation.files.libraries import definitions_in
from ilang.core.notation.functions.tokens import PARTS, WORDS
from ilang.core.notation.lines import BEGINS_FUNCTION, marks
from ilang.core.notation.reader import TYPES

if TYPE_CHECKING:
    from ilang.icli.session import ReplSession

OPERATION = re.compile(r"""einx\.$|\bop\s*=\s*["']$""")
"""Before the name of an operation in einx notation."""
USES = re.compile(r"^\s*use\b[\w\s,]*$")
"""A line that names libraries, as far as it is typed."""
QUOTES = ("einsum", "einx.", "elementwise")


class OfferedWord(NamedTuple):
    """A word, its kind (type function module keyword member operator variable), and what it is."""

    word: str
    kind: str
    says: str


def candidates(
    line: str, in_function: bool, libraries: tuple[str, ...] = (STD,)
) -> Iterator[OfferedWord]:
    """The words of the language behind a line as far as it is typed, without the word that is begun.

    ``in_function``: inside of an ``op`` or a ``cd``. ``libraries`` are those whose definitions are known there.
    """
    if OPERATION.search(line):
        yield from (OfferedWord(name, "function", "operation of einx") for name in EINX_OPS)
    elif USES.match(line):
        yield from (OfferedWord(name, "module", "library") for name in LIBRARIES)
    elif in_function and line.endswith("."):
        yield from (OfferedWord(name, "member", "part of a tensor") for name in sorted(PARTS))
    else:
        yield from (OfferedWord(name, "type", "element type, and conversion") for name in TYPES)
        yield from (OfferedWord(name, "function", "notation in quotes") for name in QUOTES)
        if in_function:
            yield from (OfferedWord(name, "keyword", "") for name in sorted(WORDS))
            yield from (OfferedWord(name, "function", "primitive") for name in PRIMITIVES)
        yield from library_candidates(libraries, wired=not in_function)


def library_candidates(libraries: tuple[str, ...], wired: bool) -> Iterator[OfferedWord]:
    """The definitions of libraries for users: components, or else tensor functions and routines."""
    for library in libraries:
        for each in definitions_in(library):
            name = each.name.text()
            if each.wired is wired and name not in INNER:
                yield OfferedWord(name, "function", f"{head_of(each.text())}   of `{library}`")


def head_of(text: str) -> str:
    """The head of the text of a definition: ``op f(x; n = 2)``, ``f(x[n])``; of one without inputs its name."""
    match = re.match(r"(?:(?:op|cd)\s+)?[A-Za-z_]\w*\s*", text)
    if match is None:
        return ""
    stop = match.end()
    if text[stop : stop + 1] == "(":
        ahead = marks(text, stop, len(text))
        stop = next((at + 1 for at, _, depth in ahead if not depth), match.end())
    return " ".join(text[:stop].split())


def completions(session: ReplSession, word: str, before: str = "") -> list[str]:
    """The completions of a word, in a text that may have bound names ``before`` it."""
    from ilang.icli.colon import COMMANDS
    from ilang.icli.filled import ARRAYS
    from ilang.icli.highlight import values

    if word.startswith(":"):
        return [f":{name}" for name in COMMANDS if f":{name}".startswith(word)]
    line = before.rpartition("\n")[2]
    known = list(candidates(line, BEGINS_FUNCTION.match(before.lstrip()) is not None))
    words = [each.word for each in known]
    if any(each.kind == "type" for each in known):  # where any name may stand
        words = [
            *sorted({*session.names(), *values(before)}),
            *words,
            "rand:",
            *(f"{name}(" for name in ARRAYS),
        ]
    return [each for each in dict.fromkeys(words) if each.startswith(word)]
