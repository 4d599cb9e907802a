"""Scalars made shorter by rules, none of which changes a bit of a result.

Example, a part of the gradient of a sigmoid:
    in:   where(x < 0, where(x < 0, a, b) * 1, 0) + where(x < 0, 0, -(-c * d))
    out:  where(x < 0, a + 0, 0 + c * d)

    a choice inside of one on the same condition       is the side that is known there
    a choice between equal sides                        is that side
    a sum or difference of choices on one condition, and of numbers    is a choice between sums or differences
    factors of 1, quotients by 1, two minus signs in one product    are left out
    a term with a minus sign                            is subtracted instead of added, or the other way round
    arithmetic on numbers                               is done, in the type of the result
    x + 0                  is x where x is never -0, or where both zeros do the same (``_settled``), as those do that
                           are compared, or added to what is never -0: -0 + 0 is 0
    x - 0, x + -0          are x
    0 * x                  is 0 where x is a finite number that has no minus sign: 0 * inf is NaN, 0 * -1 is -0
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from ilang.core.dtype import FLOATS
from ilang.core.ir.scalar import Apply, Constant, Convert, Scalar, with_arguments
from ilang.core.ops import PRIMITIVES
from ilang.core.record import mapped_inside, replace

Known = Mapping[Scalar, bool]
"""The conditions whose value is known where a scalar stands."""

SCALARS = get_args(Scalar)
ARITHMETIC = ("add", "sub", "mul", "div", "neg")
"""Primitives that are exact to the last bit in f64, and in f32 when their result in f64 is rounded."""


def short_scalar(scalar: Scalar, known: Known | None = None) -> Scalar:
    """A scalar to which the rules have been applied until none applies; itself where none does."""
    short = _settled(_short(scalar, known or {}), False)
    while short is not scalar:
        scalar, short = short, _settled(_short(short, known or {}), False)
    return short


def _short(scalar: Scalar, known: Known) -> Scalar:
    """A scalar to which all rules but those of zeros have been applied, the innermost parts first."""
    if isinstance(scalar, Apply) and scalar.primitive == "where":
        return _choice(scalar, known)
    scalar = mapped_inside(scalar, SCALARS, lambda part: _short(part, known))
    return _applied(scalar) if isinstance(scalar, Apply) else scalar


def _choice(scalar: Apply, known: Known) -> Scalar:
    """A choice whose condition, on each side, is known."""
    condition = _short(scalar.arguments[0], known)
    holds = known.get(condition)
    if holds is not None:
        return _short(scalar.arguments[1 if holds else 2], known)
    then = _short(scalar.arguments[1], {**known, condition: True})
    otherwise = _short(scalar.arguments[2], {**known, condition: False})
    if is_equal(then, otherwise):
        return then
    return with_arguments(scalar, (condition, then, otherwise))


def _applied(scalar: Apply) -> Scalar:
    """A primitive on short arguments, made shorter by the rule that fits, if one does."""
    match scalar.primitive, scalar.arguments:
        case "mul", (Constant(value=1), other):
            return other
        case "mul" | "div", (other, Constant(value=1)):
            return other
        case "neg", (part,) if (positive := _without_sign(part)) is not None:
            return positive
        case "mul" | "div", (one, other) if (left := _without_sign(one)) and (
            right := _without_sign(other)
        ):
            return replace(scalar, arguments=(left, right))
        case "add" | "sub", (one, other) if (positive := _without_sign(other)) is not None:
            turned = "sub" if scalar.primitive == "add" else "add"
            return replace(scalar, primitive=turned, arguments=(one, positive))
        case "add", (one, other) if (positive := _without_sign(one)) is not None:
            return replace(scalar, primitive="sub", arguments=(other, positive))
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


def _without_sign(scalar: Scalar) -> Scalar | None:
    """A scalar that has one minus sign, without that: of it all, or of a factor; None where it has none."""
    if not isinstance(scalar, Apply) or scalar.primitive not in ("neg", "mul", "div"):
        return None
    if scalar.primitive == "neg":
        return scalar.arguments[0]
    one, other = scalar.arguments
    if (positive := _without_sign(one)) is not None:
        return replace(scalar, arguments=(positive, other))
    if (positive := _without_sign(other)) is not None:
        return replace(scalar, arguments=(one, positive))
    return None


# -- zeros, which have signs -------------------------------------------------------------------------------------------


def _settled(scalar: Scalar, either: bool) -> Scalar:
    """A scalar without terms and factors of 0 that change nothing; ``either`` zero will do where it is 0."""
    if isinstance(scalar, Convert):
        to_float = scalar.dtype in FLOATS and scalar.argument.dtype in FLOATS
        return with_arguments(scalar, [_settled(scalar.argument, either or not to_float)])
    if not isinstance(scalar, Apply):
        return scalar
    match scalar.primitive, scalar.arguments:
        case "add" | "sub", (one, other):
            left = _settled(one, either or (scalar.primitive == "add" and _is_unsigned(other)))
            right = _settled(other, either or _is_unsigned(left))
            return _sum(scalar, left, right, either)
        case "mul", (one, other) if _vanishes(one, other) or _vanishes(other, one):
            return Constant(0.0 if scalar.dtype in FLOATS else 0, scalar.dtype)
        case "div" | "where" as primitive, (first, *others):
            choice = primitive == "where"
            rest = [_settled(each, either and choice) for each in others]
            return with_arguments(scalar, [_settled(first, either or choice), *rest])
        case primitive, arguments:
            row = PRIMITIVES[primitive]
            alike = row.zeros == "either" or row.kind in ("compare", "logic")
            alike = alike or (either and row.zeros == "odd")
            return with_arguments(scalar, [_settled(each, alike) for each in arguments])


def _sum(scalar: Apply, one: Scalar, other: Scalar, either: bool) -> Scalar:
    """A sum, or a difference, without a term of 0 that changes nothing."""
    adds = scalar.primitive == "add"
    if _is_zero(other) and (either or _is_negative(other) is adds or _is_unsigned(one)):
        return one
    if _is_zero(one) and (either or _is_negative(one) or (adds and _is_unsigned(other))):
        return other if adds else Apply("neg", (other,), scalar.dtype)
    return with_arguments(scalar, (one, other))


def _is_zero(scalar: Scalar) -> bool:
    return isinstance(scalar, Constant) and scalar.value == 0


def _is_negative(scalar: Scalar) -> bool:
    return isinstance(scalar, Constant) and math.copysign(1, scalar.value) < 0


def _is_unsigned(scalar: Scalar) -> bool:
    if scalar.dtype not in FLOATS:
        return True
    match scalar:
        case Constant():
            return not (_is_zero(scalar) and _is_negative(scalar))
        case Convert():
            return scalar.argument.dtype not in FLOATS
        case Apply(primitive="exp" | "square"):
            return True
        case Apply(primitive="add", arguments=(one, other)):
            return _is_unsigned(one) or _is_unsigned(other)
        case Apply(primitive="sub", arguments=(one, _)):
            return _is_unsigned(one)
        case Apply(primitive="where", arguments=(_, then, otherwise)):
            return _is_unsigned(then) and _is_unsigned(otherwise)
        case _:
            return False


def _vanishes(zero: Scalar, factor: Scalar) -> bool:
    """Whether the product of a number and a factor is +0, or the 0 of integers, for every value of the factor."""
    if not _is_zero(zero) or _is_negative(zero):
        return False
    match factor:
        case _ if factor.dtype not in FLOATS:
            return True
        case Constant():
            return math.isfinite(factor.value) and not _is_negative(factor)
        case Convert():
            return factor.argument.dtype == "bool"
        case Apply(primitive="where", arguments=(_, then, otherwise)):
            return _vanishes(zero, then) and _vanishes(zero, otherwise)
        case _:
            return False


# -- numbers, and choices ----------------------------------------------------------------------------------------------


def _common(parts: Sequence[Scalar]) -> Scalar | None:
    """The one condition of choices, among which numbers may be; None where they have several, or there is none."""
    choices = [part for part in parts if isinstance(part, Apply) and part.primitive == "where"]
    others = len(choices) + sum(isinstance(part, Constant) for part in parts)
    if not choices or others < len(parts):
        return None
    condition = choices[0].arguments[0]
    return condition if all(each.arguments[0] == condition for each in choices) else None


def _side(part: Scalar, place: int) -> Scalar:
    return part.arguments[place] if isinstance(part, Apply) else part


def _computed(scalar: Apply) -> Scalar:
    """The number that arithmetic on numbers gives; the scalar itself where it is none, or no finite one."""
    parts = [part.value for part in scalar.arguments if isinstance(part, Constant)]
    rounded = ROUNDED.get(scalar.dtype or "")
    compute = PRIMITIVES[scalar.primitive].python if scalar.primitive in ARITHMETIC else None
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
