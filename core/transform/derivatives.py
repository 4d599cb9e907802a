"""Derivatives of scalar expressions: what flows back to each operand.

Example:
    in:   n0 * exp(n1), flowing back: g
    out:  to operand 0: g * exp(n1);  to operand 1: g * n0 * exp(n1)

Conventions where a function has no derivative, or several (those of JAX and PyTorch where they agree):

    - equal operands of a maximum or minimum share what flows back; ``max(0, x)`` alone passes nothing back at 0
    - comparisons and logic pass nothing back: exactly 0, not something small
    - a power of exponent 0 passes nothing back to its base, a power of base 0 and an exponent that is not negative
      nothing to the exponent: no NaN where the limit is 0
    - what is rounded to fewer bits passes back what flows back to it, as a conversion does
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ilang.core.dtype import FLOATS
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Scalar
from ilang.core.ops import SLOW

Partial = Callable[[Scalar, Sequence[Scalar], Scalar], tuple[Scalar | None, ...]]
"""The cotangents of the arguments of a primitive: of its own cotangent, its arguments, and its value."""


def flowing_back(scalar: Scalar, back: Scalar, value: Scalar | None = None) -> dict[int, Scalar]:
    """The cotangent of each operand of a typed scalar expression; to operands that are missing nothing flows back.

    Args:
        scalar: over operands, constants, positions, conversions and primitives.
        back: what flows back to it, of its type.
        value: what has the value of the whole expression already, where something has.
    """
    flows: dict[int, Scalar] = {}
    _flow(scalar, back, flows, value or scalar)
    return flows


def _flow(scalar: Scalar, back: Scalar, flows: dict[int, Scalar], value: Scalar) -> None:
    match scalar:
        case Operand():
            known = flows.get(scalar.number)
            flows[scalar.number] = back if known is None else added(known, back)
        case Convert():
            if scalar.argument.dtype in FLOATS and scalar.dtype in FLOATS:
                inner = scalar.argument
                _flow(inner, converted(back, inner.dtype or ""), flows, inner)
        case Apply():
            partial = PARTIALS.get(scalar.primitive)
            parts = () if partial is None else partial(back, scalar.arguments, value)
            for argument, part in zip(scalar.arguments, parts, strict=False):
                if part is not None and argument.dtype in FLOATS:
                    _flow(argument, part, flows, argument)
        case _:
            return


def reads_value(scalar: Scalar) -> bool:
    """Whether what flows back through an expression reads its value, where that is stored.

    The value takes long to compute, or it is a ``max(0, x)``, whose x nothing else may need.
    """
    match scalar:
        case Apply("max" | "min", (bound, _)):
            return _is(bound, 0)
        case Apply():
            return scalar.primitive in SLOW
        case _:
            return False


# -- arithmetic on typed scalars, as short as it can be ---------------------------------------------------------------


def converted(scalar: Scalar, dtype: str) -> Scalar:
    """A scalar in a type."""
    if scalar.dtype == dtype:
        return scalar
    return Constant(scalar.value, dtype) if isinstance(scalar, Constant) else Convert(scalar, dtype)


def constant(value: float, like: Scalar) -> Scalar:
    """A number of the type of another scalar."""
    return Constant(value, like.dtype)


def _is(scalar: Scalar, value: float) -> bool:
    return isinstance(scalar, Constant) and scalar.value == value


def added(one: Scalar, other: Scalar) -> Scalar:
    """A sum."""
    return Apply("add", (one, other), one.dtype)


def times(one: Scalar, other: Scalar) -> Scalar:
    """A product."""
    if _is(one, 1) or _is(other, 1):
        return other if _is(one, 1) else one
    return Apply("mul", (one, other), one.dtype)


def negated(scalar: Scalar) -> Scalar:
    """The negative."""
    if isinstance(scalar, Apply) and scalar.primitive == "neg":
        return scalar.arguments[0]
    return Apply("neg", (scalar,), scalar.dtype)


def over(one: Scalar, other: Scalar) -> Scalar:
    """A quotient."""
    return Apply("div", (one, other), one.dtype)


def chosen(condition: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
    """``then`` where the condition holds."""
    return Apply("where", (condition, then, otherwise), then.dtype)


def compared(primitive: str, one: Scalar, other: Scalar) -> Scalar:
    """A comparison."""
    return Apply(primitive, (one, other), "bool")


def _call(primitive: str, *arguments: Scalar) -> Scalar:
    return Apply(primitive, arguments, arguments[0].dtype)


# -- the table ---------------------------------------------------------------------------------------------------------


def _extreme(more: str) -> Partial:
    """Of a maximum (``gt``) or minimum (``lt``)."""

    def partial(back: Scalar, args: Sequence[Scalar], known: Scalar) -> tuple[Scalar | None, ...]:
        zero, half, one = (constant(value, back) for value in (0.0, 0.5, 1.0))
        a, b = args
        if _is(a, 0):
            passing = known if isinstance(known, Operand) else b
            return None, chosen(compared(more, passing, a), back, zero)

        def share(part: Scalar, other: Scalar) -> Scalar:
            tied = chosen(compared("eq", part, other), half, zero)
            return times(back, chosen(compared(more, part, other), one, tied))

        return share(a, b), share(b, a)

    return partial


def _power(back: Scalar, args: Sequence[Scalar], value: Scalar) -> tuple[Scalar | None, ...]:
    base, exponent = args
    zero, one = constant(0.0, back), constant(1.0, back)
    lower = Apply("pow", (base, Apply("sub", (exponent, one), back.dtype)), back.dtype)
    to_base = chosen(compared("eq", exponent, zero), zero, times(times(back, exponent), lower))
    flat = Apply("and", (compared("eq", base, zero), compared("gte", exponent, zero)), "bool")
    to_exponent = chosen(flat, zero, times(times(back, value), _call("ln", base)))
    return to_base, to_exponent


def _logarithm(back: Scalar, args: Sequence[Scalar], _: Scalar) -> tuple[Scalar | None, ...]:
    base, of = args
    log_base = _call("ln", base)
    to_base = negated(over(times(back, _call("ln", of)), times(base, times(log_base, log_base))))
    return to_base, over(back, times(of, log_base))


PARTIALS: dict[str, Partial] = {
    "copy": lambda g, _a, _z: (g,),
    "add": lambda g, _a, _z: (g, g),
    "sub": lambda g, _a, _z: (g, negated(g)),
    "mul": lambda g, a, _z: (times(g, a[1]), times(g, a[0])),
    "neg": lambda g, _a, _z: (negated(g),),
    "div": lambda g, a, _z: (over(g, a[1]), negated(over(times(g, a[0]), times(a[1], a[1])))),
    "recip": lambda g, _a, z: (negated(times(times(g, z), z)),),
    "max": _extreme("gt"),
    "min": _extreme("lt"),
    "pow": _power,
    "exp": lambda g, _a, z: (times(g, z),),
    "sqrt": lambda g, _a, z: (over(g, times(constant(2.0, g), z)),),
    "square": lambda g, a, _z: (times(g, times(constant(2.0, g), a[0])),),
    "tf32": lambda g, _a, _z: (g,),
    "bf16": lambda g, _a, _z: (g,),
    "log": _logarithm,
    "ln": lambda g, a, _z: (over(g, a[0]),),
    "sin": lambda g, a, _z: (times(g, _call("cos", a[0])),),
    "cos": lambda g, a, _z: (negated(times(g, _call("sin", a[0]))),),
    "tanh": lambda g, _a, z: (times(g, Apply("sub", (constant(1.0, g), times(z, z)), g.dtype)),),
    "where": lambda g, a, _z: (
        None,
        chosen(a[0], g, constant(0.0, g)),
        chosen(a[0], constant(0.0, g), g),
    ),
}
"""Primitives through which something flows back."""
