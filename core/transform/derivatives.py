"""Derivatives of scalar expressions: what flows back to each operand.

Example:
    in:   n0 * exp(n1), flowing back: g
    out:  to operand 0: g * exp(n1);  to operand 1: g * n0 * exp(n1)

    in:   where(n0 < 1, n1, log(n1)), flowing back: g
    out:  to operand 1: g where n0 < 1, else 0; and 0 where n0 < 1, else g / n1

A choice selects after all is multiplied: where nothing flows back, an infinite derivative changes nothing. Behind a
choice, what is 0 after a product is not multiplied with a derivative that may be infinite either: a longer scalar is
cut there, and what flows back to the part is compared with 0, as it is where the part is a scalar of its own.

Conventions where a function has no derivative, or several (those of JAX and PyTorch where they agree):

    - equal operands of a maximum or minimum share what flows back; the unary forms pass nothing back at 0
    - comparisons and logic pass nothing back: exactly 0, not something small
    - a power of exponent 0 passes nothing back to its base, a power of base 0 and an exponent that is not negative
      nothing to the exponent: no NaN where the limit is 0
    - what is rounded to fewer bits passes back what flows back to it, as a conversion does
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ilang.core.dtype import FLOATS
from ilang.core.ir.scalar import Apply, Constant, Convert, Operand, Scalar, folded
from ilang.core.ops import PRIMITIVES, SLOW, Factors
from ilang.core.record import record, replace

Choice = tuple[Scalar, bool]
"""A condition, and whether something flows back where it holds, or where it does not."""


@record
class Flow:
    """The cotangent of an operand along one way through an expression: ``part`` where its choices are, else 0.

    Where ``nothing`` holds, nothing flows back, whatever the derivative is. ``again``: a further derivative follows.
    """

    part: Scalar
    choices: tuple[Choice, ...] = ()
    factors: Factors = ""
    nothing: Scalar | None = None
    again: bool = False

    def selected(self) -> Scalar:
        """The cotangent: 0 where a choice leaves it out, or where nothing flows back."""
        part, zero = self.part, constant(0.0, self.part)
        for condition, holds in self.choices:
            part = chosen(condition, part, zero) if holds else chosen(condition, zero, part)
        return part if self.nothing is None else unless(self.nothing, part, self.again)


Reached = tuple[dict[int, list[Flow]], list[tuple[Apply, Flow]]]
"""The cotangents of each operand of an expression, and of the parts at which it is cut."""


def flowing_back(
    scalar: Scalar,
    back: Flow,
    value: Scalar | None = None,
    alike: Container[int] = (),
    sparse: bool | None = None,
) -> Reached:
    """The cotangents of each operand of a typed scalar expression; to operands that are missing nothing flows back.

    Args:
        scalar: over operands, constants, positions, conversions and primitives.
        back: what flows back to it, of its type.
        value: what has the value of the whole expression already, where something has.
        alike: operands that are one number for all elements: to divide by one is finite, or nothing is.
        sparse: whether something is left out of what flows back already; None if no 0 is to be looked for.
    """
    flows: dict[int, list[Flow]] = {}
    parts: list[tuple[Apply, Flow]] = []
    todo = [(scalar, back, value or scalar)]
    while todo:
        part, flow, known = todo.pop()
        match part:
            case Operand():
                flows.setdefault(part.number, []).append(flow)
            case Convert():
                inner = part.argument
                if inner.dtype in FLOATS and part.dtype in FLOATS:
                    rounded = replace(flow, part=converted(flow.part, inner.dtype or ""))
                    todo.append((inner, rounded, inner))
            case Apply():
                behind = bool(flow.choices) or (sparse is True and flow.part is not back.part)
                if behind and sparse is not None and factors_of(part, alike) == "singular":
                    if not isinstance(flow.part, Operand | Constant):
                        parts.append((part, flow))
                        continue
                    flow = replace(flow, nothing=_zero(flow))
                ways = _ways(part, flow, known, alike)
                todo += [(argument, way, argument) for argument, way in reversed(ways)]
            case _:
                pass
    return flows, parts


def _ways(
    applied: Apply, flow: Flow, value: Scalar, alike: Container[int]
) -> list[tuple[Scalar, Flow]]:
    """The arguments of a primitive that something flows back to, and what does."""
    factors = _worse(flow.factors, factors_of(applied, alike))
    ways = []
    for argument, part in zip(
        applied.arguments, _partials(flow.part, applied, value), strict=False
    ):
        if part is None or argument.dtype not in FLOATS:
            continue
        choice = part.choice
        if choice is not None and (choice[0], not choice[1]) in flow.choices:
            continue  # the side of a choice on the same condition that is not taken
        added = () if choice is None or choice in flow.choices else (choice,)
        choices = (*flow.choices, *added)
        way = replace(flow, part=part.scalar, choices=choices, factors=factors)
        ways.append((argument, way))
    return ways


def _zero(flow: Flow) -> Scalar | None:
    """The condition by which nothing flows back where a product is 0, or where nothing did before."""
    if isinstance(flow.part, Constant):
        return flow.nothing
    nothing = compared("eq", flow.part, constant(0.0, flow.part))
    if flow.nothing in (None, nothing):
        return nothing
    return Apply("or", (flow.nothing, nothing), "bool")


def factors_of(applied: Apply, alike: Container[int] = ()) -> Factors:
    """The factors of what a primitive passes back."""
    derivative = PRIMITIVES[applied.primitive].derivative
    if derivative is not None and derivative.factors != "singular":
        return derivative.factors
    divisor = applied.arguments[-1]
    fixed = isinstance(divisor, Constant) and divisor.value != 0
    fixed = fixed or (isinstance(divisor, Operand) and divisor.number in alike)
    return "" if fixed and applied.primitive == "div" else "singular"


def _worse(one: Factors, other: Factors) -> Factors:
    """The one of two that may be infinite at more operands."""
    return next((f for f in _BY_HARM if f in (one, other)), "")


_BY_HARM: tuple[Factors, ...] = ("singular", "product")
CHOICES = frozenset(("max", "min", "pow", "where"))
"""Primitives that pass something back to one argument or the other."""


def gathered(flows: Sequence[Flow]) -> Scalar:
    """The sum of cotangents: a choice between sums, where all of them are of sides of one choice."""
    ends = {flow.choices[-1][0] if flow.choices else None for flow in flows}
    condition = next(iter(ends))
    if condition is None or 1 < len(ends):
        return summed([flow.selected() for flow in flows])
    sides = [
        [replace(flow, choices=flow.choices[:-1]) for flow in flows if flow.choices[-1][1] is holds]
        for holds in (True, False)
    ]
    zero = constant(0.0, flows[0].part)
    then, otherwise = (gathered(side) if side else zero for side in sides)
    return chosen(condition, then, otherwise)


def summed(parts: Sequence[Scalar]) -> Scalar:
    """The sum of scalars of one type."""
    return folded("add", parts, parts[0].dtype)


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


def unless(nothing: Scalar, part: Scalar, again: bool) -> Scalar:
    """A cotangent, and 0 where ``nothing`` holds and the derivative is infinite: 0 · ∞ is not a number.

    Where the derivative is finite, the product is 0 as well. If it is differentiated ``again``, the product stays: it
    has a derivative of its own.
    """
    left = chosen(nothing, constant(0.0, part), part)
    return chosen(compared("neq", part, part), left, part) if again else left


def compared(primitive: str, one: Scalar, other: Scalar) -> Scalar:
    """A comparison."""
    return Apply(primitive, (one, other), "bool")


# -- arithmetic of the table -------------------------------------------------------------------------------------------


class Formal:
    """A scalar with which ``PRIMITIVES`` computes derivatives; ``choice``: what flows back where that holds, else 0."""

    def __init__(self, scalar: Scalar, choice: Choice | None = None) -> None:
        """A scalar; numbers beside it are of its type."""
        self.scalar, self.choice = scalar, choice

    def __mul__(self, other: Formal) -> Formal:
        return Formal(times(self.scalar, other.scalar))

    def __rmul__(self, number: float) -> Formal:
        return Formal(times(constant(float(number), self.scalar), self.scalar))

    def __truediv__(self, other: Formal) -> Formal:
        return Formal(over(self.scalar, other.scalar))

    def __neg__(self) -> Formal:
        return Formal(negated(self.scalar))

    def given(self, condition: Formal) -> Formal:
        """The same where a condition holds."""
        return Formal(self.scalar, (condition.scalar, True))

    def unless(self, condition: Formal) -> Formal:
        """The same where a condition does not hold."""
        return Formal(self.scalar, (condition.scalar, False))


def _partials(back: Scalar, applied: Apply, value: Scalar) -> tuple[Formal | None, ...]:
    """The cotangents of the arguments of a primitive, some by choice."""
    if applied.primitive in ("max", "min") and isinstance(applied.arguments[0], Constant):
        return None, _past_bound(back, applied, value)
    derivative = PRIMITIVES[applied.primitive].derivative
    if derivative is None:
        return ()

    def primitive(name: str, *arguments: Formal | float) -> Formal:
        scalars = [
            each.scalar if isinstance(each, Formal) else constant(float(each), back)
            for each in arguments
        ]
        truth = PRIMITIVES[name].kind in ("compare", "logic")
        return Formal(Apply(name, tuple(scalars), "bool" if truth else back.dtype))

    operands = map(Formal, applied.arguments)
    return derivative.flows(primitive, Formal(back), Formal(value), *operands)


def _past_bound(back: Scalar, applied: Apply, value: Scalar) -> Formal:
    """The cotangent of x in ``max(0, x)``: the unary form, since a constant of a binary one stands last."""
    bound, operand = applied.arguments
    passing = value if isinstance(value, Operand) else operand
    more = "gt" if applied.primitive == "max" else "lt"
    return Formal(back, (compared(more, passing, bound), True))
