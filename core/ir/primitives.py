"""The primitives of tensor functions: THE table of what their names and signs mean (docs/functions.md).

A definition of the file hides the primitive of its name.
"""

from __future__ import annotations

from collections.abc import Container

from ilang.core.ir.scalar import Apply, Constant, Operand, Scalar, operands_of
from ilang.core.ops import PRIMITIVES as SCALARS

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
    **{
        row.notation.function: Apply(row.name, (_X, _Y, _Z)[: row.arity])
        for row in SCALARS.values()
        if row.notation.function
    },
    "exp2": Apply("exp", (Apply("mul", (_X, Constant(LN2))),)),
    "log2": Apply("mul", (Apply("ln", (_X,)), Constant(1 / LN2))),
    "recip_sqrt": Apply("recip", (Apply("sqrt", (_X,)),)),
    "relu": Apply("max", (Constant(0), _X)),
    "sat01": _sat01(),
    "abs": _abs(),
    "sigmoid": _sigmoid(),
    "fma": Apply("add", (Apply("mul", (_X, _Y)), _Z)),
}
"""Functions of elements, over their operands; they stand for operators in assignments too."""

OTHERS: dict[str, int | None] = {
    **dict.fromkeys(("transpose", "stop_gradient", "track", "square", "fill", "file"), 1),
    **dict.fromkeys(("interleave", "einmax", "dim"), 2),
    **dict.fromkeys(("sum", "elements"), 1),
    "range": 0,
    "values": None,
}
"""Primitives that are no functions of elements, and their numbers of arguments; None stands for any number."""

PRIMITIVES: dict[str, int | None] = {
    **{name: len(operands_of(scalar)) for name, scalar in ELEMENTWISE.items()},
    **OTHERS,
}
"""The number of arguments of each primitive."""

ALONG = {"sum": "+", "elements": "+", "max": ">", "min": "<"}
"""Reductions along the axes that their configuration names, and their operators; ``max`` and ``min`` of one tensor."""
ALL_AXES = "..."
"""The configuration value that stands for all axes."""

TEXTS = {"einmax": 0, "dim": 1, "file": 0}
"""The argument that is a text: a specification, the letter of an axis, a path."""

_GATE = Apply("where", (Apply("gt", (_X, Constant(0))), _Y, Constant(0)))
_SIGNS = {
    "*.": "mul",
    "/.": "div",
    "+": "add",
    "+.": "add",
    "-": "sub",
    "-.": "sub",
    "<": "lt",
    "<=": "lte",
    ">": "gt",
    ">=": "gte",
    "=": "eq",
    "<>": "neq",
    "&&": "and",
    "||": "or",
}
INFIX: dict[str, Scalar] = {
    **{sign: Apply(name, (_X, _Y)) for sign, name in _SIGNS.items()},
    "-?/": _GATE,
}
"""Operators between two operands that go element by element."""

BETWEEN: dict[str, Scalar] = {
    **{sign: INFIX[sign] for sign in ("+", "-", "-?/")},
    "*": INFIX["*."],
    "/": INFIX["/."],
    "**": Apply("pow", (_X, _Y)),
}
"""Operators between the two operands of an assignment."""

FOLDS: dict[str, tuple[str, str | None]] = {
    "+": ("add", "+"),
    "-": ("sub", "+"),
    "*": ("mul", "*"),
    "/": ("div", "*"),
    "**": ("pow", "*"),
    "?/": ("gate", None),
    "@^": ("max", ">"),
    "@-": ("min", "<"),
    "&&": ("and", "&&"),
    "||": ("or", "||"),
}
"""An accumulator: how it joins what is there and what comes, and the fold of several that come.

``a - b - c`` is ``a - (b + c)``, and so on; a gate has no such fold.
"""


def joined(accumulator: str) -> Scalar:
    """An accumulator applied to the element so far, operand 0, and the next value, operand 1."""
    name = FOLDS[accumulator][0]
    return _GATE if name == "gate" else Apply(name, (_X, _Y))


def hides(name: str, functions: Container[str]) -> bool:
    """Whether a tensor function or a primitive hides a component of a library that has its name."""
    return name in functions or name in PRIMITIVES
