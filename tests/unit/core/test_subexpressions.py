"""Variables of common sub-expressions: what stands for a value has its bits, and what takes long is computed once."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from ilang.core.ir.ids import BufferId, LocalId
from ilang.core.ir.scalar import Apply, Constant, Load, Local, Operand, Scalar, scalars_within
from ilang.core.ops import SLOW
from ilang.core.passes.subexpressions import with_variables
from tests.shares import one_in
from tests.unit.core.test_scalars import SPECIAL, TYPES, scalar, value


def bound(whole: Scalar) -> tuple[list[Apply], Scalar]:
    """The values of variables in the order of their definitions, and what is left of a scalar."""
    variables: list[Apply] = []

    def define(part: Apply) -> Scalar:
        variables.append(part)
        return Operand(100 + len(variables), part.dtype)

    return variables, with_variables(whole, define)


def slow(*scalars: Scalar) -> int:
    parts = (part for each in scalars for part in scalars_within(each))
    return sum(isinstance(part, Apply) and part.primitive in SLOW for part in parts)


def combined(draw: random.Random, dtype: str) -> Scalar:
    """A random scalar of few functions, which stand in it several times, on sides of choices on few conditions."""
    conditions = [
        Apply("lt", (Operand(n, dtype), Constant(draw.choice((0.0, 1.0)), dtype)), "bool")
        for n in range(2)
    ]
    arguments = [scalar(draw, dtype, 1) for _ in range(3)]
    arguments.append(Apply("where", (conditions[0], arguments[0], arguments[1]), dtype))
    functions = [
        Apply(draw.choice(("exp", "exp", "tanh", "recip")), (each,), dtype) for each in arguments
    ]

    def part(depth: int) -> Scalar:
        if not depth:
            return draw.choice((*functions, *functions, *arguments))
        one, other = part(depth - 1), part(depth - 1)
        primitive = draw.choice(("add", "mul", "sub", "where", "where"))
        first = (draw.choice(conditions),) if primitive == "where" else ()
        return Apply(primitive, (*first, one, other), dtype)

    return part(draw.randrange(2, 5))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("seed", one_in(3, range(6)))
def test_the_bits_stay(dtype: str, seed: int) -> None:
    draw = random.Random(seed)
    points = np.array([[a, b, c] for a in SPECIAL for b in SPECIAL for c in SPECIAL[:6]])
    found = 0
    for _ in range(150):
        operands: dict[int, Any] = dict(enumerate(points.T.astype(TYPES[dtype])))
        whole = combined(draw, dtype)
        variables, left = bound(whole)
        found += bool(variables)
        with np.errstate(all="ignore"):
            one = np.broadcast_to(value(whole, operands), len(points))
            for number, each in enumerate(variables, start=101):
                operands[number] = value(each, operands)
            other = np.broadcast_to(value(left, operands), len(points))
        numbers = ~(np.isnan(one) & np.isnan(other))
        assert one[numbers].tobytes() == other[numbers].tobytes(), (whole, variables, left)
        assert slow(*variables, left) <= slow(whole)
    assert 60 < found


def apply(primitive: str, *arguments: Scalar) -> Apply:
    return Apply(primitive, arguments, "bool" if primitive == "lt" else "f32")


X = Load(BufferId(0), (), "f32")
BELOW = apply("lt", X, Constant(0, "f32"))


def test_a_sigmoid_and_its_gradient_take_one_exponential() -> None:
    def half(x: Scalar) -> Scalar:
        quotient = apply("recip", apply("add", Constant(1, "f32"), apply("exp", x)))
        return apply("mul", quotient, apply("exp", x))

    variables, left = bound(apply("where", BELOW, half(X), half(apply("neg", X))))
    assert slow(*variables, left) == 1


def test_what_a_choice_decides_is_taken_from_what_is_computed_anyway() -> None:
    both = apply("exp", apply("where", BELOW, X, apply("neg", X)))
    whole = apply("mul", apply("where", BELOW, apply("exp", X), Constant(1, "f32")), both)
    variables, left = bound(whole)
    assert variables == [both]
    assert slow(left) == 0


def test_what_may_not_be_computed_has_no_variable() -> None:
    """A logarithm on one side of a choice alone stays there, whoever meets it twice."""
    twice = apply("mul", apply("ln", X), apply("ln", X))
    whole = apply("where", BELOW, Constant(0, "f32"), twice)
    assert bound(whole) == ([], whole)


def test_what_several_choices_may_compute_is_computed_once() -> None:
    """In vectors both sides of a choice are computed, so that the exponential would be computed twice."""
    power = apply("exp", X)
    above = apply("where", apply("lt", Constant(1, "f32"), X), power, X)
    whole = apply("add", apply("where", BELOW, power, Constant(0, "f32")), above)
    variables, left = bound(whole)
    assert variables == [power]
    assert slow(left) == 0


def test_a_choice_on_a_side_of_a_choice_has_a_variable() -> None:
    """GCC 12 makes vectors of choices, but not of choices that only some of them make."""
    inner = apply("where", apply("lt", X, Constant(1, "f32")), X, Constant(2, "f32"))
    variables, left = bound(apply("where", BELOW, Constant(0, "f32"), inner))
    assert variables == [inner]
    assert left == apply("where", BELOW, Constant(0, "f32"), Operand(101, "f32"))


def test_quick_parts_have_no_variables() -> None:
    part = apply("sub", X, Local(LocalId(0), "f32"))
    whole = apply("mul", part, part)
    assert with_variables(whole, lambda _: Local(LocalId(1), "f32")) is whole
