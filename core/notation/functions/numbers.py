"""Numbers with labels, ``'q' 2.0``, and literals, ``[ (1, 2); (3, 4) ]``, inside tensor functions."""

from __future__ import annotations

import re

from ilang.core.diagnostic import NotationError
from ilang.core.ir.functions import Nested, Number, Term, Unary, Unit
from ilang.core.notation.functions.literal import parse_literal
from ilang.core.notation.functions.tokens import lexeme, sign, take, take_number, unexpected
from ilang.core.notation.lines import marks, past_bracket
from ilang.core.notation.reader import Reader, unclosed
from ilang.core.record import replace

NUMBERS = re.compile(r"[-+0-9.eE,;()\[\]|\s]*")
"""The characters of a literal."""


def read_unit(reader: Reader) -> Unit:
    """``'q' 2.0``."""
    token = lexeme(reader)
    start = reader.pos
    span = take(reader, right=True)
    label = token.text[1:-1]
    if not label.strip():
        raise NotationError("E0191", "this label is empty", span, "for example `'q' 2.0`")
    negative = sign(reader) == "-"
    if negative:
        take(reader)
    if lexeme(reader).kind != "number":
        help_line = f'a parameter stands in double quotes: `"{label}"`'
        raise unexpected(reader, "E0191", f"a number after the label '{label}'", help_line)
    value = float(take_number(reader).value)
    return Unit(label, -value if negative else value, reader.span(start))


def is_literal(text: str) -> bool:
    """Whether a parenthesis is a literal: numbers, and a comma at its own level."""
    if not NUMBERS.fullmatch(text):
        return False
    return any(c == "," and depth == 1 for _, c, depth in marks(text, 0, len(text)))


def read_literal(reader: Reader, start: int, left: bool = False) -> Nested:
    """``[ (1, 2); (3, 4) ]`` at the cursor; ``left``: tidy text has a space before it."""
    stop = past_bracket(reader, start)
    if stop < 0:
        raise unclosed(reader.span(start, start + 1))
    literal = parse_literal(reader.source, reader.span(start, stop))
    if float("inf") in map(abs, literal.numbers):
        message = "a number of this literal is too large"
        raise NotationError("E0116", message, reader.span(start, stop), "numbers are below 1.8e308")
    _trace(reader, stop, left)
    return replace(literal, span=reader.span(start, stop))


def _trace(reader: Reader, stop: int, left: bool) -> None:
    """Take the lexemes of a literal, spaced as literals are."""
    while lexeme(reader).end <= stop and reader.pos < stop:
        token = lexeme(reader)
        opens, closes = token.text in ("[", "[|"), token.text in ("]", "|]")
        take(reader, left=closes or left, right=opens or token.text in (",", ";"))
        left = False


def number_of(term: Term) -> tuple[Number | None, bool]:
    """The number that a term is, and whether a minus stands before it."""
    if isinstance(term, Unary) and term.operator == "-" and isinstance(term.operand, Number):
        return term.operand, True
    return (term, False) if isinstance(term, Number) else (None, False)
