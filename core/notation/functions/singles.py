"""The right side of an assignment: one operation between operands, or a longer expression.

In:  ``a * (b + c)``          ``p.grad + decay *. p``
Out: ``Single("*", (a, +))``  ``Binary("+", ...)``
"""

from __future__ import annotations

from typing import cast, get_args

from ilang.core.diagnostic import NotationError
from ilang.core.ir.functions import Called, Operator, Reference, Single, Term
from ilang.core.ir.primitives import ELEMENTWISE, PRIMITIVES
from ilang.core.notation.functions import tokens
from ilang.core.notation.functions.terms import read_operand, read_whole_term
from ilang.core.notation.reader import Lexeme, Reader

OPERATORS = get_args(Operator)
PREFIXES = ("-", "?/", "not")


def read_right(reader: Reader, context: tokens.Context) -> Single | Term:
    """The right side that fills a reader.

    Raises:
        NotationError: E0199 (`**` in a longer expression), those of expressions.
    """
    reader.skip()
    start, taken = reader.pos, len(reader.trace or ())
    single = _single(reader, context)
    if single is not None:
        return single
    reader.pos = start
    if reader.trace is not None:
        del reader.trace[taken:]
    return read_whole_term(reader, context)


def _single(reader: Reader, context: tokens.Context) -> Single | None:
    """``r1 OP r2``, ``OP r``, ``r`` or a primitive of operands; None where more stands there."""
    start = reader.pos
    prefix = tokens.lexeme(reader)
    if prefix.text in PREFIXES and prefix.kind in ("sign", "word"):
        apart = prefix.text == "not" or tokens.lexeme_at(reader, prefix.end).text == "?/"
        tokens.refuse_joined(reader, prefix.text, tokens.take(reader, right=apart))
        operand = read_operand(reader, context)
        if operand is None or tokens.lexeme(reader).kind != "end":
            return None
        return Single(prefix.text, (operand,), reader.span(start))
    left = read_operand(reader, context)
    if left is None:
        return None
    between = tokens.lexeme(reader)
    if between.kind == "end":
        return _alone(left, context, reader)
    if between.text not in OPERATORS or between.kind != "sign":
        return None
    place = tokens.take(reader, left=True, right=True)
    tokens.refuse_joined(reader, between.text, place)
    right = read_operand(reader, context, signed=True)
    end = tokens.lexeme(reader)
    if right is None or end.kind != "end":
        if between.text == "**" and (end.text in tokens.BINDING or right is None):
            raise _no_power(reader, place.start, between)
        return None
    operator = cast("Operator", between.text)
    return Single(operator, (left, right), reader.span(start))


def _alone(term: Term, context: tokens.Context, reader: Reader) -> Single:
    """One operand: a primitive of elements is an operation of its own operands."""
    if isinstance(term, Called) and isinstance(term.component, Reference):
        name = term.component.name
        known = name in ELEMENTWISE and name not in context.definitions
        if known and term.settings is None and len(term.arguments) == PRIMITIVES[name]:
            return Single(name, term.arguments, term.span)
    return Single(None, (term,), reader.span(term.span.start))


def _no_power(reader: Reader, start: int, token: Lexeme) -> NotationError:
    span = reader.span(start, start + len(token.text))
    message = "`**` stands between the two operands of an assignment alone"
    return NotationError("E0199", message, span, "the pointwise power of an expression is `**.`")
