"""Blocks of tensor functions and routines, cut into statements, so that a mistake in one hides none of another.

In:  ``{ m = x ++ "...|... => 0"; x -. m *. 0.5 }``
Out: readers of ``m = x ++ "...|... => 0"`` and of ``x -. m *. 0.5``

A statement ends with its line, unless a bracket is open or the line ends in an operator or a comma; ``;`` divides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from ilang.core.diagnostic import Error, NotationError
from ilang.core.notation.functions.tokens import lexeme, unexpected
from ilang.core.notation.index.lookahead import past_bracket
from ilang.core.notation.lines import divided
from ilang.core.notation.reader import Reader

BINDS = re.compile(r"[A-Za-z_]\w*\s*=(?!=)", re.ASCII)
"""The beginning of a statement that binds a name."""
KEEPS = re.compile(r'"[^"]*"[^"]*=:')
"""The beginning of a statement that says what a tensor has in the next run."""
ASSIGN = re.compile(r"=(?:(:)(\*\*|@\^|@-|&&|\|\||\?/|[-+*/])?|(\*\*|@\^|@-|&&|\|\||\?/|[-+*/]))")
"""An operator of assignment; `=` alone binds."""
Result = TypeVar("Result")


def collected(
    parts: Sequence[Reader], read: Callable[[Reader], Result], refused: list[Error]
) -> list[Result]:
    """The results of reading each part; errors of parts that are refused go to ``refused``."""
    results: list[Result] = []
    for part in parts:
        try:
            results.append(read(part))
        except Error as error:
            others, error.others = error.others, ()
            refused += (error, *others)
    return results


def statements(reader: Reader) -> list[Reader]:
    """The statements of the block at the cursor, a reader each; the cursor then stands after it."""
    start = reader.pos
    close = past_bracket(reader, start) - 1
    if close < 0:
        place = reader.span(start, start + 1)
        raise NotationError("E0110", "this brace is never closed", place, "close it with `}`")
    reader.take(start + 1, left=True, right=True)
    parts = divided(reader, close)
    reader.take(close + 1, left=True)
    return parts


def binds(part: Reader) -> bool:
    """Whether a statement binds a name."""
    return BINDS.match(part.text, part.pos, part.end) is not None


def refuse_brace(reader: Reader, help_line: str) -> None:
    """Refuse what is no brace, where a block begins."""
    if lexeme(reader).text != "{":
        raise unexpected(reader, "E0197", "`{` and the statements", help_line)
