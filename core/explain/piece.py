"""Scalars in the usual notation: ``0.5·x[i] − exp(y[i])``, with parentheses where an operator binds less tightly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import get_args

from ilang.core.dtype import FLOATS
from ilang.core.explain.expression import number_text
from ilang.core.ir.scalar import Apply, Constant, Convert, Position, Scalar
from ilang.core.ops import OPS, PRIMITIVES, REDUCING, Level, Primitive
from ilang.core.record import record

LEVELS = {level: number for number, level in enumerate(get_args(Level))}
"""Levels of precedence of a piece of a formula, from the loosest to the tightest."""
LOGIC, COMPARISON, SUM, PRODUCT, POWER, ATOM = LEVELS.values()
WIDENING = ("bool", "i32", "i64")
"""Types of which each holds what those before it hold; floats follow."""


@record
class Piece:
    """A part of a formula, and how tightly its outermost operator binds."""

    text: str
    level: int

    def within(self, level: int) -> str:
        """The text as an operand of an operator: in parentheses where it binds less tightly."""
        return self.text if level <= self.level else f"({self.text})"

    def __format__(self, level: str) -> str:
        """The text as an operand of an operator of a level, which may be left out."""
        return self.within(LEVELS[level]) if level else self.text


def scalar_piece(scalar: Scalar, leaf: Callable[[Scalar], Piece]) -> Piece:
    """A scalar of any depth; ``leaf`` gives what is neither a number, a conversion nor a primitive."""
    order, todo = list[Scalar](), [scalar]
    while todo:
        part = todo.pop()
        order.append(part)
        todo += part.arguments[::-1] if isinstance(part, Apply) else ()
        todo += [part.argument] if isinstance(part, Convert) else []
    pieces: list[Piece] = []
    for part in reversed(order):
        count = len(part.arguments) if isinstance(part, Apply) else isinstance(part, Convert)
        inside = [pieces.pop() for _ in range(count)]
        pieces.append(_piece(part, inside, leaf))
    return pieces[0]


def _piece(scalar: Scalar, parts: Sequence[Piece], leaf: Callable[[Scalar], Piece]) -> Piece:
    """A scalar of pieces; conversions that lose nothing but digits are left out."""
    match scalar:
        case Constant():
            text = number_text(scalar.value)
            signed = text.startswith("-")
            return Piece(text.replace("-", "−", 1) if signed else text, SUM if signed else ATOM)
        case Convert():
            (inner,) = parts
            place = isinstance(scalar.argument, Position)  # which any integer type holds
            wide = (place and scalar.dtype != "bool") or _is_wider(
                scalar.dtype, scalar.argument.dtype
            )
            return inner if wide else Piece(f"{scalar.dtype}({inner.text})", ATOM)
        case Apply(primitive="truth") if scalar.arguments[0].dtype == "bool":
            return parts[0]
        case Apply():
            return _applied(scalar.primitive, parts)
        case _:
            return leaf(scalar)


def updated(acc: str, place: str, value: Piece) -> str:
    """The operator and the right side by which a place takes one more value: ``+= x``, ``= max(most, x)``."""
    match acc:
        case "+" | "*":
            return f"{acc}= {value.text}"
        case ">" | "<":
            return f"= {OPS[acc].letter}({place}, {value.text})"
        case _:
            return f"= {place} {OPS[acc].name} {value.within(COMPARISON)}"


def _is_wider(dtype: str | None, source: str | None) -> bool:
    """Whether a type holds every value of another, or is a float."""
    if dtype in FLOATS or source in FLOATS:
        return dtype in FLOATS
    return WIDENING.index(source or "") <= WIDENING.index(dtype or "")


def position_piece(terms: Sequence[tuple[int, str]]) -> Piece:
    """A position as a value: ``2·i + 1``."""
    text = ""
    for coefficient, word in terms:
        factor = "" if abs(coefficient) == 1 and word else str(abs(coefficient))
        term = "·".join(filter(None, (factor, word)))
        sign = "−" if coefficient < 0 else "+"
        text += f" {sign} {term}" if text else f"{'−' * (coefficient < 0)}{term}"
    if len(terms) > 1 or text.startswith("−"):
        return Piece(text, SUM)
    return Piece(text or "0", PRODUCT if "·" in text else ATOM)


def _applied(primitive: str, parts: Sequence[Piece]) -> Piece:
    row = PRIMITIVES[primitive]
    if row.expansion is not None:
        return row.expansion(_expanded, *parts)  # type: ignore[no-any-return]
    if row.formula.text == "{}":
        return parts[0]
    match primitive, parts:
        case "add", (first, second) if second.text.startswith("−") and second.level == SUM:
            return Piece(f"{first.within(SUM)} − {second.text[1:]}", SUM)
        case "mul", (first, second):
            return _product(first, second)
        case "where", (test, yes, no):
            same = test.text.removesuffix(" == −inf")
            if same != test.text and yes.text == f"{same} − {same}":  # infinity less infinity
                parts = (test, Piece("nan", ATOM), no)
        case _:
            pass
    if not row.formula.text:
        return Piece(f"{primitive}({', '.join(part.text for part in parts)})", ATOM)
    return Piece(row.formula.text.format(*_beside(row, parts)), LEVELS[row.formula.level])


def _expanded(primitive: str, *parts: Piece | int) -> Piece:
    return _applied(primitive, [Piece(str(x), ATOM) if isinstance(x, int) else x for x in parts])


def _beside(row: Primitive, parts: Sequence[Piece]) -> Sequence[Piece]:
    """The operands of an operator: a reduction takes what follows for its own, and nothing that stands before it."""
    if len(parts) != 2:
        return parts
    first, second = parts
    folds = [row.formula.level == "product" and _is_fold(part) for part in parts]
    first = Piece(f"({first.text})", ATOM) if folds[0] else first
    return first, Piece(second.text, ATOM) if folds[1] else second


def _product(first: Piece, second: Piece) -> Piece:
    """Two pieces in a product; a number stands first, and a sign before it."""
    if _is_negative(first) or _is_negative(second):
        number, other = (first, second) if _is_negative(first) else (second, first)
        if not _is_negative(other):
            product = _product(Piece(number.text[1:], ATOM), other)
            return Piece(f"−{product.text}", SUM)
    numbers = [_is_number(part.text) for part in (first, second)]
    if numbers == [False, True] or (_is_fold(first) and second.level == ATOM):
        first, second = second, first
    if _is_number(first.text) and second.text.startswith("1 / "):
        return Piece(f"{first.text}{second.text[1:]}", PRODUCT)
    if " / " in first.text and first.level == PRODUCT:
        first = Piece(f"({first.text})", ATOM)
    row = PRIMITIVES["mul"]
    return Piece(row.formula.text.format(*_beside(row, (first, second))), PRODUCT)


def _is_negative(piece: Piece) -> bool:
    """Whether a piece is a number below zero."""
    return piece.text.startswith("−") and piece.text[1:2].isdigit() and _is_number(piece.text[1:])


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[\d.]+(e[+-]?\d+)?", text) is not None


def _is_fold(piece: Piece) -> bool:
    """Whether a reduction stands in a product, and would take what follows for its own."""
    return piece.level == PRODUCT and any(f"{op.letter}_" in piece.text for op in REDUCING.values())
