"""THE op table: every operator of the language, and every scalar primitive a graph can hold.

An operator is what a user writes (docs/language.md section 2); a primitive is what it means on scalars. To add an
operator: one row in ``OPS``; if its meaning is new, one row in ``PRIMITIVES``. A row has all that is said of a
primitive: NumPy's function, C's operator, the derivative, the formula. What no row can say has a function where it is
used: ``SPECIAL`` of ``reference.py`` where NumPy has none, and cases of ``Spelling`` in ``cfamily.py``.
``tests/unit/test_ops.py`` fails until all of them agree.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal

from ilang.core.record import record

Kind = Literal["arithmetic", "float", "compare", "select", "logic", "move"]
"""The treatment of element types by a primitive."""
Level = Literal["logic", "comparison", "sum", "product", "power", "atom"]
"""The precedence of the outermost operator of a formula, from the loosest to the tightest."""
Factors = Literal["", "product", "singular"]
"""The factors of a derivative: finite numbers, operands, or functions that are infinite at some finite operands."""


@record
class Primitive:
    """A scalar function.

    ``kind`` fixes its element types: ``arithmetic`` (operands brought to one type, that is the result),
    ``float`` (the same, and the type must be f32 or f64), ``compare`` (operands brought to one type, bool result),
    ``select`` (the first operand taken as a truth value, the others brought to one type, that is the result),
    ``logic`` (each operand taken as a truth value, bool result), ``move`` (the operand's own type).

    What it is elsewhere:
        ``says``: a phrase of ``i explain``. ``word``: a noun for its results, which names them in formulas.
        ``numpy``: NumPy's function, whose name is that of einx, too. ``python``: the same on numbers, exact in f64.
        ``function``: the function of tensor functions, ``log`` for the logarithm.
        ``sign``: the operator in the texts of the IRs. ``c``: the operator of C; without one it is a function, of
        ``headers/`` or else of the C library: ``sqrtf`` in f32, ``sqrt`` in f64.
        ``formula``: its formula at a ``level``, with operands that bind at least as tightly as their formats say;
        without one a call. ``expansion``: its expression of others, which stands for C, NumPy and a formula.

    ``derivative`` gives what flows back to each operand (None: nothing), of what flows back to the result, the result,
    and the operands; ``p`` applies a primitive. ``factors`` are those of what it gives.

    ``cost`` is its work beside which an addition is nothing, in elements that are read from memory and added.
    ``commutative``: operands may change places, and the result has the same bits. ``zeros``: the result is the same for
    ``either`` zero, or ``odd``: the same but for the sign of a zero. ``power``: it is a power by this number.
    ``rounds_to``: the numbers that it rounds to, for matrix units.
    """

    name: str
    arity: int
    kind: Kind
    says: str
    word: str
    numpy: str = ""
    python: Callable[..., Any] | None = None
    function: str = ""
    sign: str = ""
    c: str = ""
    formula: str = ""
    level: Level = "atom"
    expansion: Callable[..., Any] | None = None
    derivative: Callable[..., tuple[Any, ...]] | None = None
    factors: Factors = "singular"
    cost: int = 0
    commutative: bool = False
    zeros: Literal["", "either", "odd"] = ""
    power: float | None = None
    rounds_to: str = ""


# fmt: off
def _comparison(name: str, sign: str, says: str, numpy: str, python: Callable[..., Any]) -> Primitive:
    return Primitive(
        name, 2, "compare", says, "holds", numpy=numpy, python=python, sign=sign, c=sign,
        formula=f"{{:sum}} {sign} {{:sum}}", level="comparison", commutative=name in ("eq", "neq"),
    )


def _logic(name: str, c: str, says: str) -> Primitive:
    return Primitive(
        name, 2, "logic", says, "holds", numpy=f"logical_{name}", sign=name, c=c,
        formula=f"{{:comparison}} {name} {{:comparison}}", level="logic", commutative=True,
    )


PRIMITIVES: dict[str, Primitive] = {
    each.name: each
    for each in (
        Primitive(
            "copy", 1, "move", "copy", "values", numpy="asarray", formula="{}", zeros="odd",
            derivative=lambda p, g, z, x: (g,), factors="",
        ),
        Primitive(
            "add", 2, "arithmetic", "add", "sum", numpy="add", python=operator.add, sign="+", c="+",
            formula="{:sum} + {:sum}", level="sum", commutative=True,
            derivative=lambda p, g, z, x, y: (g, g), factors="",
        ),
        Primitive(
            "mul", 2, "arithmetic", "multiply", "product", numpy="multiply", python=operator.mul, sign="*", c="*",
            formula="{:product}·{:product}", level="product", commutative=True, zeros="odd",
            derivative=lambda p, g, z, x, y: (g * y, g * x), factors="product",
        ),
        Primitive(
            "sub", 2, "arithmetic", "subtract", "difference", numpy="subtract", python=operator.sub, sign="-", c="-",
            formula="{:sum} − {:product}", level="sum",
            derivative=lambda p, g, z, x, y: (g, -g), factors="",
        ),
        Primitive(
            "neg", 1, "arithmetic", "negate", "negative", numpy="negative", python=operator.neg, function="neg", c="-",
            formula="−{:product}", level="sum", zeros="odd",
            derivative=lambda p, g, z, x: (-g,), factors="",
        ),
        Primitive(
            "div", 2, "float", "divide", "quotient", numpy="divide", python=operator.truediv, sign="/", c="/",
            formula="{:product} / {:power}", level="product", cost=2,
            derivative=lambda p, g, z, x, y: (g / y, -(g * x / (y * y))),
        ),
        Primitive(
            "floor_divide", 2, "arithmetic", "quotient rounded down", "quotient", numpy="floor_divide",
            formula="{:product} // {:power}", level="product", cost=8,
        ),
        Primitive(
            "recip", 1, "float", "reciprocal", "quotient", numpy="reciprocal", function="recip", cost=2, power=-1.0,
            expansion=lambda p, x: p("div", 1, x),
            derivative=lambda p, g, z, x: (-(g * z * z),),
        ),
        Primitive(
            "max", 2, "arithmetic", "maximum", "largest", numpy="maximum", python=max, function="max", zeros="odd",
            derivative=lambda p, g, z, x, y: (
                (g * p("where", p("eq", x, y), 0.5, 1)).given(p("gte", x, y)),
                (g * p("where", p("eq", y, x), 0.5, 1)).given(p("gte", y, x)),
            ), factors="",
        ),
        Primitive(
            "min", 2, "arithmetic", "minimum", "smallest", numpy="minimum", python=min, function="min", zeros="odd",
            derivative=lambda p, g, z, x, y: (
                (g * p("where", p("eq", x, y), 0.5, 1)).given(p("lte", x, y)),
                (g * p("where", p("eq", y, x), 0.5, 1)).given(p("lte", y, x)),
            ), factors="",
        ),
        Primitive(
            "pow", 2, "float", "power", "power", numpy="power", sign="^",
            formula="{:atom}^{:atom}", level="power", cost=8,
            derivative=lambda p, g, z, x, y: (
                (g * y * p("pow", x, p("sub", y, 1))).unless(p("eq", y, 0)),
                (g * z * p("ln", x)).unless(p("and", p("eq", x, 0), p("gte", y, 0))),
            ),
        ),
        Primitive(
            "exp", 1, "float", "exponential", "exps", numpy="exp", function="exp", cost=8, zeros="either",
            derivative=lambda p, g, z, x: (g * z,),
        ),
        Primitive(
            "sqrt", 1, "float", "square root", "root", numpy="sqrt", function="sqrt", cost=2, zeros="odd", power=0.5,
            derivative=lambda p, g, z, x: (g / (2 * z),),
        ),
        Primitive(
            "square", 1, "float", "square", "square", numpy="square",
            formula="{:atom}²", level="power", zeros="either", power=2.0,
            derivative=lambda p, g, z, x: (g * (2 * x),), factors="product",
        ),
        Primitive(
            "tf32", 1, "float", "rounded to the 11 bits of TF32", "values", rounds_to="TF32",
            formula="{}", derivative=lambda p, g, z, x: (g,), factors="",
        ),
        Primitive(
            "bf16", 1, "float", "rounded to the 8 bits of bf16", "values", rounds_to="bf16",
            formula="{}", derivative=lambda p, g, z, x: (g,), factors="",
        ),
        Primitive(
            "log", 2, "float", "logarithm of the right to the base of the left", "logs", cost=8,
            expansion=lambda p, x, y: p("div", p("ln", y), p("ln", x)),
            derivative=lambda p, g, z, x, y: (
                -(g * p("ln", y) / (x * (p("ln", x) * p("ln", x)))),
                g / (y * p("ln", x)),
            ),
        ),
        Primitive(
            "ln", 1, "float", "natural logarithm", "logs", numpy="log", function="log", formula="log({})", cost=8,
            derivative=lambda p, g, z, x: (g / x,),
        ),
        Primitive(
            "sin", 1, "float", "sine", "sines", numpy="sin", function="sin", cost=8, zeros="odd",
            derivative=lambda p, g, z, x: (g * p("cos", x),),
        ),
        Primitive(
            "cos", 1, "float", "cosine", "cosines", numpy="cos", function="cos", cost=8, zeros="either",
            derivative=lambda p, g, z, x: (-(g * p("sin", x)),),
        ),
        Primitive(
            "tanh", 1, "float", "hyperbolic tangent", "tangents", numpy="tanh", function="tanh", cost=8, zeros="odd",
            derivative=lambda p, g, z, x: (g * p("sub", 1, z * z),),
        ),
        Primitive(
            "where", 3, "select", "the second where the first is true, else the third", "choice", numpy="where",
            function="where", formula="({1} if {0} else {2})",
            derivative=lambda p, g, z, test, x, y: (None, g.given(test), g.unless(test)), factors="",
        ),
        _comparison("gt", ">", "whether greater than", "greater", operator.gt),
        _comparison("gte", ">=", "whether at least", "greater_equal", operator.ge),
        _comparison("lt", "<", "whether less than", "less", operator.lt),
        _comparison("lte", "<=", "whether at most", "less_equal", operator.le),
        _comparison("eq", "==", "whether equal to", "equal", operator.eq),
        _comparison("neq", "!=", "whether different from", "not_equal", operator.ne),
        _logic("and", "&", "and"),
        _logic("or", "|", "or"),
        _logic("xor", "^", "exclusive or"),
        Primitive(
            "not", 1, "logic", "not", "holds", numpy="logical_not", c="!",
            formula="not {:atom}", level="comparison",
        ),
        Primitive("truth", 1, "logic", "truth", "holds", formula="{:sum} != 0", level="comparison"),
    )
}
# fmt: on


@record
class Op:
    """An operator.

    ``binary`` and ``unary`` name primitives; None where the form does not exist. ``unary_left`` is the constant the
    unary form puts on the left of the binary primitive (``>x`` is max(0, x)), ``unary_right`` on its right
    (``>>x`` is x > 0).

    Of an operator that reduces: ``identity`` is its neutral element, as a float (infinite for max and min; a type
    without infinities takes its own end), None for the others. ``reduction_says`` is how ``explain`` calls a
    reduction, ``many`` several, ``letter`` stands for one in a formula, and ``word`` names its results there.
    ``mode`` is its name in elementwise kernels, ``numpy`` that of NumPy and of einx.
    """

    symbol: str
    name: str
    binary: str | None
    unary: str
    unary_left: float | None = None
    unary_right: float | None = None
    identity: float | None = None
    reduction_says: str = ""
    many: str = ""
    letter: str = ""
    word: str = ""
    mode: str = ""
    numpy: str = ""


INFINITY = float("inf")

# fmt: off
OPS: dict[str, Op] = {
    op.symbol: op
    for op in (
        Op("+", "add", "add", "copy", identity=0.0, reduction_says="sum", many="sums", letter="Σ", word="total",
           mode="sum", numpy="sum"),
        Op("*", "mul", "mul", "copy", identity=1.0, reduction_says="product", many="products", letter="Π",
           word="product", mode="prod", numpy="prod"),
        Op("-", "sub", "sub", "neg"),
        Op("/", "div", "div", "recip"),
        Op(">", "max", "max", "max", 0.0, None, -INFINITY, reduction_says="maximum", many="maxima", letter="max",
           word="top", mode="max", numpy="max"),
        Op("<", "min", "min", "min", 0.0, None, INFINITY, reduction_says="minimum", many="minima", letter="min",
           word="least", mode="min", numpy="min"),
        Op("^", "pow", "pow", "exp"),
        Op("$", "log", "log", "ln"),
        Op(">>", "gt", "gt", "gt", None, 0.0),
        Op(">=", "gte", "gte", "gte", None, 0.0),
        Op("<<", "lt", "lt", "lt", None, 0.0),
        Op("<=", "lte", "lte", "lte", None, 0.0),
        Op("==", "eq", "eq", "eq", None, 0.0),
        Op("!=", "neq", "neq", "neq", None, 0.0),
        Op("&&", "and", "and", "truth", identity=1.0, reduction_says="whether all hold", many="truth values",
           letter="all", word="every", mode="and", numpy="all"),
        Op("||", "or", "or", "truth", identity=0.0, reduction_says="whether any holds", many="truth values",
           letter="any", word="some", mode="or", numpy="any"),
        Op("^^", "xor", "xor", "truth", identity=0.0, reduction_says="whether an odd number hold",
           many="truth values", letter="odd", word="parity", mode="xor"),
        Op("!!", "not", None, "not"),
    )
}
# fmt: on

ARGUMENTS = {">@": ">", "<@": "<"}
"""Operators that give the positions of what another reduces to, written before one input: ``>@ij~i`` is the argmax."""

NAMED = {op.name: op.symbol for op in OPS.values()}
"""The operators by name."""
BETWEEN = {op.binary: op.symbol for op in OPS.values() if op.binary is not None}
"""The operators between two inputs, by the primitives that they mean."""
REDUCING = {op.binary: op for op in OPS.values() if op.binary and op.identity is not None}
"""The operators that reduce, by the primitives that combine two values."""
COMMUTATIVE = frozenset(p.name for p in PRIMITIVES.values() if p.commutative)
"""Primitives whose two operands may change places: the result has the same bits."""
COSTS = {p.name: p.cost for p in PRIMITIVES.values() if p.cost}
"""The work of each primitive that has a cost; ``core/cost.py`` counts with it."""
SLOW = frozenset(p.name for p in PRIMITIVES.values() if p.kind == "float" and p.cost >= 8)
"""Functions of floats that take longer than moving what they are of."""
ROUNDED = {p.name: p.rounds_to for p in PRIMITIVES.values() if p.rounds_to}
"""The names of the numbers that primitives round to, for matrix units."""
POWERS = {p.power: p.name for p in PRIMITIVES.values() if p.power is not None}
"""The primitives that a power by a literal is (docs/language.md section 4), by that number."""
BY_NUMPY = {p.numpy: p.name for p in PRIMITIVES.values() if p.numpy}
"""The primitives by the names that NumPy has for them."""

SYMBOLS = tuple(sorted(OPS, key=lambda s: (-len(s), s)))
"""Operator spellings, longest first: the order in which a reader tries them."""
