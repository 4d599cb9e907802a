"""THE op table: every operator of the language, and every scalar primitive a graph can hold.

An operator is what a user writes (LANGUAGE.md section 1); a primitive is what it means on scalars. To add an
operator: one row in ``OPS``; if its meaning is new, one row in ``PRIMITIVES``, a line in ``reference.py`` and a
spelling in each target. ``tests/unit/test_ops.py`` fails until all of them agree.
"""

from __future__ import annotations

from typing import Literal

from ilang.core.record import record

Kind = Literal["arithmetic", "float", "compare", "select", "logic", "move"]
"""The treatment of element types by a primitive."""


@record
class Primitive:
    """A scalar function.

    ``kind`` fixes its element types: ``arithmetic`` (operands brought to one type, that is the result),
    ``float`` (the same, and the type must be f32 or f64), ``compare`` (operands brought to one type, bool result),
    ``select`` (the first operand taken as a truth value, the others brought to one type, that is the result),
    ``logic`` (each operand taken as a truth value, bool result), ``move`` (the operand's own type).
    """

    name: str
    arity: int
    kind: Kind
    says: str


PRIMITIVES: dict[str, Primitive] = {
    p.name: p
    for p in (
        Primitive("copy", 1, "move", "copy"),
        Primitive("add", 2, "arithmetic", "add"),
        Primitive("mul", 2, "arithmetic", "multiply"),
        Primitive("sub", 2, "arithmetic", "subtract"),
        Primitive("neg", 1, "arithmetic", "negate"),
        Primitive("div", 2, "float", "divide"),
        Primitive("floor_divide", 2, "arithmetic", "quotient rounded down"),
        Primitive("recip", 1, "float", "reciprocal"),
        Primitive("max", 2, "arithmetic", "maximum"),
        Primitive("min", 2, "arithmetic", "minimum"),
        Primitive("pow", 2, "float", "power"),
        Primitive("exp", 1, "float", "exponential"),
        Primitive("sqrt", 1, "float", "square root"),
        Primitive("square", 1, "float", "square"),
        Primitive("tf32", 1, "float", "rounded to the 11 bits of TF32"),
        Primitive("bf16", 1, "float", "rounded to the 8 bits of bf16"),
        Primitive("log", 2, "float", "logarithm of the right to the base of the left"),
        Primitive("ln", 1, "float", "natural logarithm"),
        Primitive("sin", 1, "float", "sine"),
        Primitive("cos", 1, "float", "cosine"),
        Primitive("tanh", 1, "float", "hyperbolic tangent"),
        Primitive("where", 3, "select", "the second where the first is true, else the third"),
        Primitive("gt", 2, "compare", "whether greater than"),
        Primitive("gte", 2, "compare", "whether at least"),
        Primitive("lt", 2, "compare", "whether less than"),
        Primitive("lte", 2, "compare", "whether at most"),
        Primitive("eq", 2, "compare", "whether equal to"),
        Primitive("neq", 2, "compare", "whether different from"),
        Primitive("and", 2, "logic", "and"),
        Primitive("or", 2, "logic", "or"),
        Primitive("xor", 2, "logic", "exclusive or"),
        Primitive("not", 1, "logic", "not"),
        Primitive("truth", 1, "logic", "truth"),
    )
}


@record
class Op:
    """An operator.

    ``binary`` and ``unary`` name primitives; None where the form does not exist. ``unary_left`` is the constant the
    unary form puts on the left of the binary primitive (``>x`` is max(0, x)), ``unary_right`` on its right
    (``>>x`` is x > 0). ``identity`` is the neutral element of a reducible operator, as a float (infinite for max and
    min; a type without infinities takes its own end), None for the others. ``reduction_says`` is how ``explain``
    calls the reduction.
    """

    symbol: str
    name: str
    binary: str | None
    unary: str
    unary_left: float | None = None
    unary_right: float | None = None
    identity: float | None = None
    reduction_says: str = ""


INFINITY = float("inf")

OPS: dict[str, Op] = {
    op.symbol: op
    for op in (
        Op("+", "add", "add", "copy", identity=0.0, reduction_says="sum"),
        Op("*", "mul", "mul", "copy", identity=1.0, reduction_says="product"),
        Op("-", "sub", "sub", "neg"),
        Op("/", "div", "div", "recip"),
        Op(">", "max", "max", "max", 0.0, None, -INFINITY, "maximum"),
        Op("<", "min", "min", "min", 0.0, None, INFINITY, "minimum"),
        Op("^", "pow", "pow", "exp"),
        Op("$", "log", "log", "ln"),
        Op(">>", "gt", "gt", "gt", None, 0.0),
        Op(">=", "gte", "gte", "gte", None, 0.0),
        Op("<<", "lt", "lt", "lt", None, 0.0),
        Op("<=", "lte", "lte", "lte", None, 0.0),
        Op("==", "eq", "eq", "eq", None, 0.0),
        Op("!=", "neq", "neq", "neq", None, 0.0),
        Op(
            "&&",
            "and",
            "and",
            "truth",
            identity=1.0,
            reduction_says="whether all hold",
        ),
        Op(
            "||",
            "or",
            "or",
            "truth",
            identity=0.0,
            reduction_says="whether any holds",
        ),
        Op(
            "^^",
            "xor",
            "xor",
            "truth",
            identity=0.0,
            reduction_says="whether an odd number hold",
        ),
        Op("!!", "not", None, "not"),
    )
}

ARGUMENTS = {">@": ">", "<@": "<"}
"""Operators that give the positions of what another reduces to, written before one input: ``>@ij~i`` is the argmax."""

COMMUTATIVE = frozenset({"add", "mul", "and", "or", "xor", "eq", "neq"})
"""Primitives whose two operands may change places: the result has the same bits."""

SLOW = frozenset({"exp", "ln", "log", "pow", "sin", "cos", "tanh"})
"""Primitives that take longer than moving what they are of."""

COSTS = {**dict.fromkeys(SLOW, 8), "floor_divide": 8, "div": 2, "recip": 2, "sqrt": 2}
"""Work of primitives beside which an addition is nothing, in elements that are read from memory and added.

``core/cost.py`` counts with it.
"""

ROUNDED = {"tf32": "TF32", "bf16": "bf16"}
"""The names of the numbers that primitives round to, for matrix units."""

SYMBOLS = tuple(sorted(OPS, key=lambda s: (-len(s), s)))
"""Operator spellings, longest first: the order in which a reader tries them."""
