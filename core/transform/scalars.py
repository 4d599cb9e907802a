"""Scalars made shorter by rules, none of which changes a bit of a result.

Example, a part of the gradient of a sigmoid:
    in:   where(x < 0, where(x < 0, a, b) * 1, 0) + where(x < 0, 0, - -c)
    out:  where(x < 0, a + 0, 0 + c)

    a choice inside of one on the same condition       is the side that is known there
    a choice between equal sides                        is that side
    a sum or difference of choices on one condition, and of numbers    is a choice between sums or differences
    factors of 1, quotients by 1, a number taken from itself negated twice    are left out
    arithmetic on numbers                               is done, in the type of the result

A sum with 0 stays: -0 + 0 is 0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from ilang.core.ir.scalar import Apply, Constant, Scalar
from ilang.core.ir.shaped import Assignment, Node, Shaped
from ilang.core.record import mapped_inside, replace
from ilang.core.transform.building import pruned, reading

Known = Mapping[Scalar, bool]
"""The conditions whose value is known where a scalar stands."""

SCALARS = get_args(Scalar)
ARITHMETIC: Mapping[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
}
"""Primitives that are exact to the last bit in f64, and in f32 when their result in f64 is rounded."""


def shortened(shaped: Shaped) -> Shaped:
    """The program with shorter scalars."""
    nodes: list[Node] = []
    for node in shaped.nodes:
        short = node
        if isinstance(node, Assignment):
            scalar = short_scalar(node.scalar)
            short = node if scalar is node.scalar else reading(node, node.reads, scalar)
        nodes.append(short)
    return pruned(replace(shaped, nodes=tuple(nodes)))


def short_scalar(scalar: Scalar, known: Known | None = None) -> Scalar:
    """A scalar to which the rules have been applied, the innermost parts first; itself where none applies."""
    known = known or {}
    if isinstance(scalar, Apply) and scalar.primitive == "where":
        return _choice(scalar, known)
    scalar = mapped_inside(scalar, SCALARS, lambda part: short_scalar(part, known))
    return _applied(scalar) if isinstance(scalar, Apply) else scalar


def _choice(scalar: Apply, known: Known) -> Scalar:
    """A choice whose condition, on each side, is known."""
    condition = short_scalar(scalar.arguments[0], known)
    holds = known.get(condition)
    if holds is not None:
        return short_scalar(scalar.arguments[1 if holds else 2], known)
    then = short_scalar(scalar.arguments[1], {**known, condition: True})
    otherwise = short_scalar(scalar.arguments[2], {**known, condition: False})
    if is_equal(then, otherwise):
        return then
    arguments = (condition, then, otherwise)
    same = all(a is b for a, b in zip(arguments, scalar.arguments, strict=True))
    return scalar if same else replace(scalar, arguments=arguments)


def _applied(scalar: Apply) -> Scalar:
    """A primitive on short arguments, made shorter by the rule that fits, if one does."""
    match scalar.primitive, scalar.arguments:
        case "mul", (Constant(value=1), other):
            return other
        case "mul" | "div", (other, Constant(value=1)):
            return other
        case "neg", (Apply(primitive="neg") as inner,):
            return inner.arguments[0]
        case "add" | "sub", parts if condition := _common(parts):
            then, otherwise = (
                _applied(replace(scalar, arguments=tuple(_side(part, place) for part in parts)))
                for place in (1, 2)
            )
            if is_equal(then, otherwise):
                return then
            return Apply("where", (condition, then, otherwise), scalar.dtype)
        case _:
            return _computed(scalar)


def _common(parts: Sequence[Scalar]) -> Scalar | None:
    """The one condition of choices, among which numbers may be; None where they have several, or there is none."""
    choices = [part for part in parts if isinstance(part, Apply) and part.primitive == "where"]
    others = len(choices) + sum(isinstance(part, Constant) for part in parts)
    if not choices or others < len(parts):
        return None
    condition = choices[0].arguments[0]
    return condition if all(each.arguments[0] == condition for each in choices) else None


def _side(part: Scalar, place: int) -> Scalar:
    """One side of a choice, 1 or 2; a number is on both."""
    return part.arguments[place] if isinstance(part, Apply) else part


def _computed(scalar: Apply) -> Scalar:
    """The number that arithmetic on numbers gives; the scalar itself where it is none, or no finite one."""
    parts = [part.value for part in scalar.arguments if isinstance(part, Constant)]
    rounded = ROUNDED.get(scalar.dtype or "")
    compute = ARITHMETIC.get(scalar.primitive)
    if rounded is None or compute is None or len(parts) < len(scalar.arguments):
        return scalar
    if scalar.primitive == "div" and not parts[1]:
        return scalar
    value = compute(*(rounded(float(part)) for part in parts))
    try:
        value = rounded(value)
    except OverflowError:  # past the largest f32
        return scalar
    return Constant(value, scalar.dtype) if math.isfinite(value) else scalar


def _single(value: float) -> float:
    """A number rounded to f32."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


ROUNDED: Mapping[str, Callable[[float], float]] = {"f32": _single, "f64": float}
"""The number that a type holds, for each type of floats."""


def is_equal(one: Scalar, other: Scalar) -> bool:
    """Whether two scalars are the same to the last bit: 0 and -0 are not."""
    return one == other and repr(one) == repr(other)
