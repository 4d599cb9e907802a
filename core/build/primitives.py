"""The primitives of tensor functions: THE table of what their names mean, element by element (TENSORS.md section 2)."""

from __future__ import annotations

from ilang.core.ir.scalar import Apply, Constant, Operand, Scalar

_X, _Y, _Z = Operand(0), Operand(1), Operand(2)
_NEGATIVE = Apply("lt", (_X, Constant(0)))


def _sat01() -> Scalar:
    """Between 0 and 1; where it is at an end its derivative is 0."""
    below_one = Apply("where", (Apply("lt", (_X, Constant(1))), _X, Constant(1)))
    nan = Apply("neq", (_X, _X))
    above = Apply("or", (Apply("gt", (_X, Constant(0))), nan))
    return Apply("where", (above, Apply("where", (nan, _X, below_one)), Constant(0)))


def _abs() -> Scalar:
    """The magnitude, whose derivative at 0 is 0."""
    zero = Apply("where", (Apply("eq", (_X, Constant(0))), Constant(0), _X))
    return Apply("where", (_NEGATIVE, Apply("neg", (_X,)), zero))


def _sigmoid() -> Scalar:
    """1/(1 + e^-x), from an exponential that never overflows: neither does its derivative."""
    small = Apply("exp", (Apply("where", (_NEGATIVE, _X, Apply("neg", (_X,)))),))
    top = Apply("where", (_NEGATIVE, small, Constant(1)))
    return Apply("mul", (top, Apply("recip", (Apply("add", (Constant(1), small)),))))


LN2 = 0.6931471805599453

ELEMENTWISE: dict[str, Scalar] = {
    "exp": Apply("exp", (_X,)),
    "log": Apply("ln", (_X,)),
    "exp2": Apply("exp", (Apply("mul", (_X, Constant(LN2))),)),
    "log2": Apply("mul", (Apply("ln", (_X,)), Constant(1 / LN2))),
    "sin": Apply("sin", (_X,)),
    "cos": Apply("cos", (_X,)),
    "tanh": Apply("tanh", (_X,)),
    "sqrt": Apply("sqrt", (_X,)),
    "recip": Apply("recip", (_X,)),
    "recip_sqrt": Apply("recip", (Apply("sqrt", (_X,)),)),
    "relu": Apply("max", (Constant(0), _X)),
    "sat01": _sat01(),
    "neg": Apply("neg", (_X,)),
    "abs": _abs(),
    "sigmoid": _sigmoid(),
    "where": Apply("where", (_X, _Y, _Z)),
    "max": Apply("max", (_X, _Y)),
    "min": Apply("min", (_X, _Y)),
    "fma": Apply("add", (Apply("mul", (_X, _Y)), _Z)),
}
"""Functions of elements, over their operands; ``ir/primitives.py`` has how many there are."""

INFIX: dict[str, Scalar] = {
    "*.": Apply("mul", (_X, _Y)),
    "/.": Apply("div", (_X, _Y)),
    "+": Apply("add", (_X, _Y)),
    "+.": Apply("add", (_X, _Y)),
    "-": Apply("sub", (_X, _Y)),
    "-.": Apply("sub", (_X, _Y)),
    "-?/": Apply("where", (Apply("gt", (_X, Constant(0))), _Y, Constant(0))),
    "<": Apply("lt", (_X, _Y)),
    "<=": Apply("lte", (_X, _Y)),
    ">": Apply("gt", (_X, _Y)),
    ">=": Apply("gte", (_X, _Y)),
    "=": Apply("eq", (_X, _Y)),
    "<>": Apply("neq", (_X, _Y)),
    "&&": Apply("and", (_X, _Y)),
    "||": Apply("or", (_X, _Y)),
}
"""Operators between two operands that go element by element."""

BETWEEN: dict[str, Scalar] = {
    "+": INFIX["+"],
    "-": INFIX["-"],
    "*": Apply("mul", (_X, _Y)),
    "/": Apply("div", (_X, _Y)),
    "**": Apply("pow", (_X, _Y)),
    "-?/": INFIX["-?/"],
}
"""Operators between the two operands of an assignment."""

FOLDS: dict[str, tuple[str, str | None, float]] = {
    "+": ("add", "+", 0.0),
    "-": ("sub", "+", 0.0),
    "*": ("mul", "*", 1.0),
    "/": ("div", "*", 1.0),
    "**": ("pow", "*", 1.0),
    "?/": ("gate", None, 1.0),
    "@^": ("max", ">", float("-inf")),
    "@-": ("min", "<", float("inf")),
    "&&": ("and", "&&", 1.0),
    "||": ("or", "||", 0.0),
}
"""An accumulator: how it joins what is there and what comes, the fold of several that come, its neutral element.

``a - b - c`` is ``a - (b + c)``, and so on; a gate has no such fold.
"""


def joined(accumulator: str) -> Scalar:
    """An accumulator applied to the element so far, operand 0, and the next value, operand 1."""
    name = FOLDS[accumulator][0]
    if name == "gate":
        return Apply("where", (Apply("gt", (_X, Constant(0))), _Y, Constant(0)))
    return Apply(name, (_X, _Y))
