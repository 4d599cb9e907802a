"""Loops that divide by one number: a product with its reciprocal, corrected to the very quotient, costs less.

    if (the divisor is in range)
        for j: out[j] = quotient_f32(t[j], s, 1 / s), and the largest |t[j]| so far
    if (not, or that was too large)
        for j: out[j] = t[j] / s

The first loop needs an instruction that multiplies and adds with one rounding; where there is none, only the second is
compiled. Both give the same bits, but for quotients below the smallest normal number, which may differ in the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.codegen.targets.cfamily import C_TYPES, INDENT, LEFT_SMALL, Spelling
from ilang.core.ir.kernel import Define, For, Program, Statement, Store
from ilang.core.ir.scalar import Apply, Constant, Load, Local, Scalar, walk

HELPERS = ("quotient_f32", "bits_of_f32", "divides_f32")


def _is_short(program: Program, fixed: int | None) -> bool:
    """Whether a loop is known to end before a product costs less than a division."""
    return fixed is not None and fixed < program.machine.divided_iterations


def divided(program: Program, loop: For) -> Apply | None:
    """The one division of a loop by what the loop does not change, where the loop may run twice; else None."""
    fixed = program.sizes[loop.size].fixed
    if loop.parallel or loop.role or loop.lanes > 1 or _is_short(program, fixed):
        return None
    stored = {s.buffer for s in loop.body if isinstance(s, Store)}
    own = {s.variable for s in loop.body if isinstance(s, Define)}
    found: list[Apply] = []
    for s in loop.body:
        if not isinstance(s, (Define, Store)) or (isinstance(s, Define) and s.mutable):
            return None
        for part in walk(s.value):
            if isinstance(part, Load) and part.buffer in stored:
                return None
            if isinstance(part, Apply) and part.primitive == "div" and part.dtype == "f32":
                found.append(part)
    if len(found) != 1 or not stored:
        return None
    number, divisor = found[0].arguments
    varies = isinstance(number, (Load, Local)) and not _is_same(number, loop.variable, own)
    return found[0] if varies and _is_same(divisor, loop.variable, own) else None


def _is_same(scalar: Scalar, variable: int, own: set[int]) -> bool:
    """Whether a number is the same in all iterations of the loop over a variable that defines ``own``."""
    match scalar:
        case Constant():
            return True
        case Local():
            return scalar.variable not in own
        case Load():
            return all(v != variable for index in scalar.index for _, v in index.terms)
        case _:
            return False


def lines(loop: For, division: Apply, head: str, spelling: Spelling, indent: str) -> Iterator[str]:
    """The first loop; what follows it is the second. ``head`` opens the loop, ``{`` included."""
    number, divisor = (spelling.expression(part) for part in division.arguments)
    deeper, inside = indent + INDENT, indent + INDENT + INDENT
    yield "#ifdef FUSED"
    yield f"{indent}uint32_t largest = UINT32_MAX;"
    yield f"{indent}if (divides_f32({divisor})) {{"
    yield f"{deeper}const float reciprocal = 1.0f / {divisor};"
    yield f"{deeper}largest = 0;"
    yield LEFT_SMALL
    yield f"{deeper}{head}"
    quotient = Quotient(spelling, division, f"quotient_f32({number}, {divisor}, reciprocal)")
    yield from (inside + text for text in _body(loop.body, quotient, spelling))
    yield f"{inside}const uint32_t size = bits_of_f32({number}) << 1;"
    yield f"{inside}largest = size > largest ? size : largest;"
    yield f"{deeper}}}"
    yield f"{indent}}}"
    yield f"{indent}if (largest > MOST_DIVIDED)"
    yield "#endif"


def _body(body: Sequence[Statement], quotient: Quotient, spelling: Spelling) -> Iterator[str]:
    for s in body:
        if isinstance(s, Define):
            yield f"const {C_TYPES[s.dtype]} {spelling.local(s.variable)} = {quotient.value(s.value)};"
        elif isinstance(s, Store):
            yield f"{spelling.element(s.buffer, s.index)} = {quotient.value(s.value)};"


class Quotient(Spelling):
    """Scalars of a kernel in which one division has another text."""

    def __init__(self, spelling: Spelling, division: Apply, text: str) -> None:
        super().__init__(spelling.program, spelling.kernel, spelling.variables)
        self.division = division
        self.text = text

    def expression(self, scalar: Scalar) -> str:
        """A scalar as C text."""
        return self.text if scalar is self.division else super().expression(scalar)
