"""Scalars in the usual notation: ``0.5·x[i] − exp(y[i])``, with parentheses where an operator binds less tightly."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ilang.core.dtype import FLOATS
from ilang.core.explain.expression import number_text
from ilang.core.ir.scalar import Apply, Constant, Convert, Position, Scalar
from ilang.core.record import record

LOGIC, COMPARISON, SUM, PRODUCT, POWER, ATOM = range(6)
"""Levels of precedence of a piece of a formula, from the loosest to the tightest."""
INFIX = {
    "add": (" + ", SUM), "sub": (" − ", SUM), "mul": ("·", PRODUCT), "div": (" / ", PRODUCT), "pow": ("^", POWER),
}  # fmt: skip
COMPARED = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "eq": "==", "neq": "!="}
JOINED = ("and", "or", "xor")
WIDENING = ("bool", "i32", "i64")
"""Types of which each holds what those before it hold; floats follow."""
FOLDS = {"+": "Σ", "*": "Π", ">": "max", "<": "min", "&&": "all", "||": "any", "^^": "odd"}
"""The word of an accumulator before the axes that it folds."""


@record
class Piece:
    """A part of a formula, and how tightly its outermost operator binds."""

    text: str
    level: int

    def within(self, level: int) -> str:
        """The text as an operand of an operator: in parentheses where it binds less tightly."""
        return self.text if level <= self.level else f"({self.text})"


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
            return f"= {FOLDS[acc]}({place}, {value.text})"
        case _:
            word = {"&&": "and", "||": "or"}.get(acc, "xor")
            return f"= {place} {word} {value.within(COMPARISON)}"


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
    return Piece(text or "0", SUM if len(terms) > 1 or text.startswith("−") else PRODUCT)


def _applied(primitive: str, parts: Sequence[Piece]) -> Piece:
    """A primitive of pieces, in the usual notation."""
    if primitive in ("copy", "tf32", "bf16"):  # as conversions, roundings of floats are not shown
        return parts[0]
    if primitive in INFIX:
        return _infix(primitive, *parts)
    if primitive in COMPARED:
        both = (part.within(SUM) for part in parts)
        return Piece(f" {COMPARED[primitive]} ".join(both), COMPARISON)
    if primitive in JOINED:
        return Piece(f" {primitive} ".join(part.within(COMPARISON) for part in parts), LOGIC)
    return _called(primitive, parts)


def _infix(primitive: str, first: Piece, second: Piece) -> Piece:
    """Two pieces with an operator of arithmetic between them; a number stands first in a product."""
    sign, level = INFIX[primitive]
    if primitive == "add" and second.text.startswith("−") and second.level == SUM:
        return Piece(f"{first.within(SUM)} − {second.text[1:]}", SUM)
    if primitive == "mul" and (_is_negative(first) or _is_negative(second)):
        number, other = (first, second) if _is_negative(first) else (second, first)
        if not _is_negative(other):
            product = _infix("mul", Piece(number.text[1:], ATOM), other)
            return Piece(f"−{product.text}", SUM)
    numbers = [_is_number(part.text) for part in (first, second)]
    turned = numbers == [False, True] or (_is_fold(first) and second.level == ATOM)
    if primitive == "mul" and turned:
        first, second = second, first
    if primitive == "mul" and _is_number(first.text) and second.text.startswith("1 / "):
        return Piece(f"{first.text}{second.text[1:]}", PRODUCT)
    if primitive == "mul" and " / " in first.text and first.level == PRODUCT:
        first = Piece(f"({first.text})", ATOM)
    right = level + (primitive in ("sub", "div", "pow") and not _is_fold(second))
    left = level + (primitive == "pow" or (level == PRODUCT and _is_fold(first)))
    return Piece(f"{first.within(left)}{sign}{second.within(right)}", level)


def _is_negative(piece: Piece) -> bool:
    """Whether a piece is a number below zero."""
    return piece.text.startswith("−") and piece.text[1:2].isdigit() and _is_number(piece.text[1:])


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[\d.]+(e[+-]?\d+)?", text) is not None


def _called(primitive: str, parts: Sequence[Piece]) -> Piece:
    """A function of pieces."""
    texts = [part.text for part in parts]
    match primitive:
        case "neg":
            return Piece(f"−{parts[0].within(PRODUCT)}", SUM)
        case "recip":
            return Piece(f"1 / {parts[0].within(POWER)}", PRODUCT)
        case "square":
            return Piece(f"{parts[0].within(ATOM)}²", POWER)
        case "where":
            same = texts[0].removesuffix(" == −inf")
            if same != texts[0] and texts[1] == f"{same} − {same}":  # infinity less infinity
                texts[1] = "nan"
            return Piece(f"({texts[1]} if {texts[0]} else {texts[2]})", ATOM)
        case "ln":
            return Piece(f"log({texts[0]})", ATOM)
        case "log":
            return Piece(f"log({texts[1]}) / log({texts[0]})", PRODUCT)
        case "not":
            return Piece(f"not {parts[0].within(ATOM)}", COMPARISON)
        case "truth":
            return Piece(f"{parts[0].within(SUM)} != 0", COMPARISON)
        case "floor_divide":
            return Piece(f"{parts[0].within(PRODUCT)} // {parts[1].within(POWER)}", PRODUCT)
        case _:
            return Piece(f"{primitive}({', '.join(texts)})", ATOM)


def _is_fold(piece: Piece) -> bool:
    """Whether a reduction stands in a product, and would take what follows for its own."""
    return piece.level == PRODUCT and any(f"{word}_" in piece.text for word in FOLDS.values())
