"""Loops that divide by one number: a product with its reciprocal, corrected to the very quotient, costs less.

    if (the divisor is in range)
        for j: out[j] = quotient_f32(t[j], s, 1 / s), and the largest |t[j]| so far
    if (not, or that was too large)
        for j: out[j] = t[j] / s

A row that holds nothing but quotients of a row is computed by a function of the library: divide_row_f32(out, t, n, s).
The first loop needs an instruction that multiplies and adds with one rounding; where there is none, only the second is
compiled. Both loops give the same bits, but for quotients below the smallest normal number, which may differ in the
last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.codegen.targets.braces import braced
from ilang.codegen.targets.cfamily import C_TYPES, LEFT_SMALL, Spelling
from ilang.core.calculus.affine import Affine
from ilang.core.ir.kernel import Define, For, Statement, Store
from ilang.core.ir.scalar import Apply, Load, Scalar


def row(loop: For, division: Apply, spelling: Spelling) -> str | None:
    """The call that does a whole loop, where it divides a row and stores the quotients in a row; else None."""
    if len(loop.body) != 1 or not isinstance(store := loop.body[0], Store):
        return None
    number, divisor = division.arguments
    if store.value != division or not isinstance(number, Load):
        return None
    rows = (store.buffer, store.index), (number.buffer, number.index)
    if any(spelling.element_kind(buffer) != C_TYPES["f32"] for buffer, _ in rows):
        return None
    if not all(_is_row(index, loop.variable) for _, index in rows):
        return None
    out, given = (_start(buffer, index, loop.variable, spelling) for buffer, index in rows)
    count = spelling.size(loop.size)
    return f"divide_row_f32({out}, {given}, {count}, {spelling.expression(divisor)});"


def _is_row(index: Sequence[Affine], variable: int) -> bool:
    """Whether consecutive iterations are at consecutive elements."""
    if not index or index[-1].coefficient(variable) != 1:
        return False
    return not any(variable in part.axes() for part in (*index[:-1], index[-1].without({variable})))


def _start(buffer: int, index: Sequence[Affine], variable: int, spelling: Spelling) -> str:
    """A pointer to the element of the first iteration."""
    first = (*index[:-1], index[-1].without({variable}))
    text = spelling.element(buffer, first)
    return text.removesuffix("[0]") if text.endswith("[0]") else f"&{text}"


def lines(loop: For, division: Apply, head: str, spelling: Spelling) -> Iterator[str]:
    """The first loop, which has this head; what follows it is the second."""
    number, divisor = (spelling.expression(part) for part in division.arguments)
    quotient = Quotient(spelling, division, f"quotient_f32({number}, {divisor}, reciprocal)")
    iteration = (
        *_divided(loop.body, quotient, spelling),
        f"const uint32_t size = bits_of_f32({number}) << 1;",
        "largest = size > largest ? size : largest;",
    )
    first_loop = (
        f"const float reciprocal = 1.0f / {divisor};",
        "largest = 0;",
        LEFT_SMALL,
        *braced(head, iteration),
    )
    yield "#ifdef FUSED"
    yield "uint32_t largest = UINT32_MAX;"
    yield from braced(f"if (divides_f32({divisor}))", first_loop)
    yield "if (largest > MOST_DIVIDED)"
    yield "#endif"


def _divided(body: Sequence[Statement], quotient: Quotient, spelling: Spelling) -> Iterator[str]:
    """The statements of an iteration, in which the quotient is a product; places have their names from ``spelling``."""
    for s in body:
        if isinstance(s, Define):
            yield f"const {C_TYPES[s.dtype]} {spelling.local(s.variable)} = {quotient.value(s.value)};"
        elif isinstance(s, Store):
            yield f"{spelling.element(s.buffer, s.index)} = {quotient.value(s.value)};"


class Quotient(Spelling):
    """Scalars of a kernel in which one division has another text."""

    def __init__(self, spelling: Spelling, division: Apply, text: str) -> None:
        super().__init__(spelling.program, spelling.kernel)
        self.division = division
        self.text = text

    def expression(self, scalar: Scalar) -> str:
        """A scalar as C text."""
        return self.text if scalar == self.division else super().expression(scalar)
