"""Scalars made shorter have the same bits, zeros with their signs among them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Scalar, scalars_within
from ilang.core.ir.scalar_rules import short_scalar
from ilang.core.reference import MEANING

TYPES = {"f32": np.float32, "f64": np.float64}
SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    3.0,
    1 / 3,
    1e30,
    -1e30,
    1e-40,
    float("inf"),
    float("-inf"),
    float("nan"),
)


def value(scalar: Scalar, operands: Mapping[int, Any]) -> Any:
    """What a scalar is for arrays of operands, by the oracle's meaning of each primitive."""
    match scalar:
        case Operand():
            return operands[scalar.number]
        case Constant():
            return TYPES[scalar.dtype or ""](scalar.value)
        case Convert():
            return value(scalar.argument, operands).astype(TYPES.get(scalar.dtype or "", np.bool_))
        case Apply():
            return MEANING[scalar.primitive](*(value(part, operands) for part in scalar.arguments))
        case _:
            raise AssertionError(scalar)


def scalar(draw: random.Random, dtype: str, depth: int) -> Scalar:
    """A random scalar over three operands, with few conditions, so that they meet themselves."""
    if not depth or draw.random() < 0.1:
        if draw.random() < 0.4:
            return Constant(draw.choice((0.0, -0.0, 1, 2, -3.5, 1 / 3, 1e30)), dtype)
        return Operand(draw.randrange(3), dtype)

    def part() -> Scalar:
        return scalar(draw, dtype, depth - 1)

    def condition() -> Scalar:
        left: Scalar = Operand(draw.randrange(2), dtype)
        if draw.random() < 0.1:
            left = part()
        return Apply(draw.choice(("lt", "gte")), (left, Constant(0, dtype)), "bool")

    kind = draw.choice(("add", "sub", "mul", "div", "where", "where", "unary", "bool"))
    if kind == "bool":
        return Convert(condition(), dtype)
    if kind == "unary":
        unary = draw.choice(("neg", "neg", "neg", "square", "sqrt", "exp", "tanh", "max"))
        bound = (Constant(draw.choice((0.0, -0.0)), dtype),) if unary == "max" else ()
        return Apply(unary, (*bound, part()), dtype)
    if kind == "where":
        return Apply("where", (condition(), part(), part()), dtype)
    return Apply(kind, (part(), part()), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("seed", range(8))
def test_the_bits_stay(dtype: str, seed: int) -> None:
    draw = random.Random(seed)
    points = np.array([[a, b, c] for a in SPECIAL for b in SPECIAL for c in SPECIAL[:6]])
    operands = dict(enumerate(points.T.astype(TYPES[dtype])))
    shorter = 0
    for _ in range(150):
        long = scalar(draw, dtype, 5)
        short = short_scalar(long)
        with np.errstate(all="ignore"):
            one, other = (
                np.broadcast_to(value(each, operands), len(points)) for each in (long, short)
            )
        numbers = ~(np.isnan(one) & np.isnan(other))
        assert one.dtype == other.dtype
        assert one[numbers].tobytes() == other[numbers].tobytes(), (long, short)
        assert short_scalar(short) == short
        lengths = [
            sum(isinstance(x, Apply) for x in scalars_within(each)) for each in (long, short)
        ]
        shorter += lengths[1] < lengths[0]
    assert 30 < shorter


def test_a_scalar_to_which_nothing_applies_is_itself() -> None:
    whole = Apply("add", (Operand(0, "f32"), Constant(0, "f32")), "f32")
    assert short_scalar(whole) is whole


def test_arithmetic_past_the_largest_number_stays() -> None:
    """The C of a constant that is no number would be another one."""
    whole = Apply("mul", (Constant(1e30, "f32"), Constant(1e30, "f32")), "f32")
    assert short_scalar(whole) is whole
    assert short_scalar(Apply("div", (Constant(1, "f64"), Constant(0, "f64")), "f64")) == Apply(
        "div", (Constant(1, "f64"), Constant(0, "f64")), "f64"
    )


def test_choices_on_one_condition_are_one() -> None:
    x, a, b = (Operand(n, "f32") for n in range(3))
    zero = Constant(0, "f32")
    below = Apply("lt", (x, zero), "bool")

    def choice(then: Scalar, otherwise: Scalar) -> Apply:
        return Apply("where", (below, then, otherwise), "f32")

    total = Apply("add", (choice(choice(a, b), zero), choice(zero, choice(a, b))), "f32")
    expected = choice(Apply("add", (a, zero), "f32"), Apply("add", (zero, b), "f32"))
    assert short_scalar(total) == expected
