"""Loops that are written otherwise than one iteration after the other: in parts, with a reciprocal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.codegen.targets.braces import LEFT_SMALL, braced
from ilang.codegen.targets.cfamily import C_TYPES, Held, Spelling
from ilang.core.calculus.affine import Affine
from ilang.core.ir.kernel import Define, For, If, Statement, Store
from ilang.core.ir.scalar import Apply, Load

Piece = tuple[str, Sequence[Statement]]
"""The head of a loop, and what its iterations do."""


def pieces(parts: If, end: str, spelling: Spelling) -> tuple[list[str], list[Piece]]:
    """The statements that say where the middle part of a loop is, at its first iteration; and its parts, in order.

        int64_t x = 0;
        const int64_t start_x = min_i64(max_i64(x, 1), n_x);
        const int64_t stop_x = max_i64(start_x, min_i64(n_in0 + 1, n_x));
        for (; x < start_x; ++x) in0_copy[x] = 0.0f;
        for (; x < stop_x; ++x) in0_copy[x] = in0[x - 1];
        for (; x < n_x; ++x) in0_copy[x] = 0.0f;

    A loop that still tests where it reads is marked ``SCALAR``.
    """
    (middle,) = parts.body
    assert isinstance(middle, For)
    begins, ends = bool(middle.begin.operands), bool(middle.end.operands)
    name = spelling.variable(middle.variable)
    start, stop = spelling.bound(middle.begin, name), spelling.bound(middle.end, end)
    start = f"min_i64({start}, {end})" if begins else start
    stop = f"max_i64(start_{name}, {stop})" if ends else stop
    if parts.within:
        stop = f"({spelling.conditions(parts.within)}) ? {stop} : start_{name}"
    lines = [f"const int64_t start_{name} = {start};", f"const int64_t stop_{name} = {stop};"]
    first = "" if parts.otherwise else f"{name} = start_{name}"
    of_parts: list[Piece] = []
    if parts.otherwise and begins:
        of_parts.append((f"for (; {name} < start_{name}; ++{name})", parts.otherwise))
    of_parts.append((f"for ({first}; {name} < stop_{name}; ++{name})", middle.body))
    if parts.otherwise and (ends or parts.within):
        of_parts.append((f"for (; {name} < {end}; ++{name})", parts.otherwise))
    return lines, of_parts


def divided_row(loop: For, division: Apply, spelling: Spelling) -> str | None:
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
    out, given = (_start_of_row(buffer, index, loop.variable, spelling) for buffer, index in rows)
    count = spelling.size(loop.size)
    return f"divide_row_f32({out}, {given}, {count}, {spelling.expression(divisor)});"


def _is_row(index: Sequence[Affine], variable: int) -> bool:
    """Whether consecutive iterations are at consecutive elements."""
    if not index or index[-1].coefficient(variable) != 1:
        return False
    return not any(variable in part.axes() for part in (*index[:-1], index[-1].without({variable})))


def _start_of_row(buffer: int, index: Sequence[Affine], variable: int, spelling: Spelling) -> str:
    """A pointer to the element of the first iteration."""
    first = (*index[:-1], index[-1].without({variable}))
    text = spelling.element(buffer, first)
    return text.removesuffix("[0]") if text.endswith("[0]") else f"&{text}"


def divided_lines(loop: For, division: Apply, head: str, spelling: Spelling) -> Iterator[str]:
    """The first loop, which has this head; what follows it is the second.

        if (the divisor is in range)
            for j: out[j] = quotient_f32(t[j], s, 1 / s), and the largest |t[j]| so far
        if (not, or that was too large)
            for j: out[j] = t[j] / s

    A row that holds nothing but quotients of a row is computed by a function of the library: divide_row_f32(out, t, n,
    s). The first loop needs an instruction that multiplies and adds with one rounding; where there is none, only the
    second is compiled. Both loops give the same bits, but for quotients below the smallest normal number, which may
    differ in the last one.
    """
    number, divisor = (spelling.expression(part) for part in division.arguments)
    quotient = Held(spelling, {division: f"quotient_f32({number}, {divisor}, reciprocal)"})
    iteration = (
        *_divided(loop.body, quotient, spelling),
        f"const uint32_t size = bits_of_f32({number}) << 1;",
        "greatest = size > greatest ? size : greatest;",
    )
    first_loop = (
        f"const float reciprocal = 1.0f / {divisor};",
        "greatest = 0;",
        LEFT_SMALL,
        *braced(head, iteration),
    )
    yield "#ifdef FUSED"
    yield "uint32_t greatest = UINT32_MAX;"
    yield from braced(f"if (divides_f32({divisor}))", first_loop)
    yield "if (greatest > MOST_DIVIDED)"
    yield "#endif"


def _divided(body: Sequence[Statement], quotient: Spelling, spelling: Spelling) -> Iterator[str]:
    """The statements of an iteration, in which the quotient is a product; places have their names from ``spelling``."""
    for s in body:
        if isinstance(s, Define):
            yield f"const {C_TYPES[s.dtype]} {spelling.local(s.variable)} = {quotient.value(s.value)};"
        elif isinstance(s, Store):
            yield f"{spelling.element(s.buffer, s.index)} = {quotient.value(s.value)};"
