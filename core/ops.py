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
class Notation:
    """A scalar function elsewhere: in NumPy and einx, in tensor functions, between operands in the IRs, and in C.

    Without an operator of C it is a function, of ``headers/`` or else of the C library: ``sqrtf`` in f32, ``sqrt`` in
    f64.
    """

    numpy: str = ""
    function: str = ""
    sign: str = ""
    c: str = ""


@record
class Wording:
    """A scalar function in formulas: a noun for its results, and its text at a ``level``; without a text a call.

    Operands bind at least as tightly as the formats of the text say.
    """

    word: str
    text: str = ""
    level: Level = "atom"


@record
class Derivative:
    """The derivative of a scalar function: what ``flows`` back to each operand (None: nothing), and its ``factors``.

    The arguments of ``flows``: ``p``, which applies a primitive, what flows back to the result, the result, operands.
    """

    flows: Callable[..., tuple[Any, ...]]
    factors: Factors = "singular"


@record
class Primitive:
    """A scalar function.

    ``kind`` fixes its element types: ``arithmetic`` (operands brought to one type, that is the result),
    ``float`` (the same, and the type must be f32 or f64), ``compare`` (operands brought to one type, bool result),
    ``select`` (the first operand taken as a truth value, the others brought to one type, that is the result),
    ``logic`` (each operand taken as a truth value, bool result), ``move`` (the operand's own type).

    ``says`` is a phrase of ``i explain``; ``python`` computes it on numbers, exact in f64. ``expansion`` is its
    expression of others, which stands for C, NumPy and a formula.
    ``cost`` is its work beside which an addition is nothing, in elements that are read from memory and added.
    ``commutative``: operands may change places, and the result has the same bits. ``zeros``: the result is the same for
    ``either`` zero, or ``odd``: the same but for the sign of a zero.
    """

    name: str
    arity: int
    kind: Kind
    says: str
    formula: Wording
    notation: Notation = Notation()
    python: Callable[..., Any] | None = None
    expansion: Callable[..., Any] | None = None
    derivative: Derivative | None = None
    cost: int = 0
    commutative: bool = False
    zeros: Literal["", "either", "odd"] = ""


# fmt: off
def _comparison(name: str, sign: str, says: str, numpy: str, python: Callable[..., Any]) -> Primitive:
    return Primitive(
        name, 2, "compare", says, Wording("holds", f"{{:sum}} {sign} {{:sum}}", "comparison"),
        Notation(numpy, sign=sign, c=sign), python=python, commutative=name in ("eq", "neq"),
    )


def _logic(name: str, c: str, says: str) -> Primitive:
    return Primitive(
        name, 2, "logic", says, Wording("holds", f"{{:comparison}} {name} {{:comparison}}", "logic"),
        Notation(f"logical_{name}", sign=name, c=c), commutative=True,
    )


PRIMITIVES: dict[str, Primitive] = {
    each.name: each
    for each in (
        Primitive(
            "copy", 1, "move", "copy", Wording("values", "{}"), Notation("asarray"), zeros="odd",
            derivative=Derivative(lambda p, g, z, x: (g,), ""),
        ),
        Primitive(
            "add", 2, "arithmetic", "add", Wording("sum", "{:sum} + {:sum}", "sum"), Notation("add", sign="+", c="+"),
            python=operator.add, commutative=True, derivative=Derivative(lambda p, g, z, x, y: (g, g), ""),
        ),
        Primitive(
            "mul", 2, "arithmetic", "multiply", Wording("product", "{:product}·{:product}", "product"),
            Notation("multiply", sign="*", c="*"), python=operator.mul, commutative=True, zeros="odd",
            derivative=Derivative(lambda p, g, z, x, y: (g * y, g * x), "product"),
        ),
        Primitive(
            "sub", 2, "arithmetic", "subtract", Wording("difference", "{:sum} − {:product}", "sum"),
            Notation("subtract", sign="-", c="-"), python=operator.sub,
            derivative=Derivative(lambda p, g, z, x, y: (g, -g), ""),
        ),
        Primitive(
            "neg", 1, "arithmetic", "negate", Wording("negative", "−{:product}", "sum"),
            Notation("negative", function="neg", c="-"), python=operator.neg, zeros="odd",
            derivative=Derivative(lambda p, g, z, x: (-g,), ""),
        ),
        Primitive(
            "div", 2, "float", "divide", Wording("quotient", "{:product} / {:power}", "product"),
            Notation("divide", sign="/", c="/"), python=operator.truediv, cost=2,
            derivative=Derivative(lambda p, g, z, x, y: (g / y, -(g * x / (y * y)))),
        ),
        Primitive(
            "floor_divide", 2, "arithmetic", "quotient rounded down",
            Wording("quotient", "{:product} // {:power}", "product"), Notation("floor_divide"), cost=8,
        ),
        Primitive(
            "recip", 1, "float", "reciprocal", Wording("quotient"), Notation("reciprocal", function="recip"),
            expansion=lambda p, x: p("div", 1, x), cost=2, derivative=Derivative(lambda p, g, z, x: (-(g * z * z),)),
        ),
        Primitive(
            "max", 2, "arithmetic", "maximum", Wording("largest"), Notation("maximum", function="max"), python=max,
            zeros="odd",
            derivative=Derivative(lambda p, g, z, x, y: (
                (g * p("where", p("eq", x, y), 0.5, 1)).given(p("gte", x, y)),
                (g * p("where", p("eq", y, x), 0.5, 1)).given(p("gte", y, x)),
            ), ""),
        ),
        Primitive(
            "min", 2, "arithmetic", "minimum", Wording("smallest"), Notation("minimum", function="min"), python=min,
            zeros="odd",
            derivative=Derivative(lambda p, g, z, x, y: (
                (g * p("where", p("eq", x, y), 0.5, 1)).given(p("lte", x, y)),
                (g * p("where", p("eq", y, x), 0.5, 1)).given(p("lte", y, x)),
            ), ""),
        ),
        Primitive(
            "pow", 2, "float", "power", Wording("power", "{:atom}^{:atom}", "power"), Notation("power", sign="^"),
            cost=8,
            derivative=Derivative(lambda p, g, z, x, y: (
                (g * y * p("pow", x, p("sub", y, 1))).unless(p("eq", y, 0)),
                (g * z * p("ln", x)).unless(p("and", p("eq", x, 0), p("gte", y, 0))),
            )),
        ),
        Primitive(
            "exp", 1, "float", "exponential", Wording("exps"), Notation("exp", function="exp"), cost=8,
            zeros="either", derivative=Derivative(lambda p, g, z, x: (g * z,)),
        ),
        Primitive(
            "sqrt", 1, "float", "square root", Wording("root"), Notation("sqrt", function="sqrt"), cost=2,
            zeros="odd", derivative=Derivative(lambda p, g, z, x: (g / (2 * z),)),
        ),
        Primitive(
            "square", 1, "float", "square", Wording("square", "{:atom}²", "power"), Notation("square"),
            zeros="either", derivative=Derivative(lambda p, g, z, x: (g * (2 * x),), "product"),
        ),
        Primitive(
            "tf32", 1, "float", "rounded to the 11 bits of TF32", Wording("values", "{}"),
            derivative=Derivative(lambda p, g, z, x: (g,), ""),
        ),
        Primitive(
            "bf16", 1, "float", "rounded to the 8 bits of bf16", Wording("values", "{}"),
            derivative=Derivative(lambda p, g, z, x: (g,), ""),
        ),
        Primitive(
            "log", 2, "float", "logarithm of the right to the base of the left", Wording("logs"),
            expansion=lambda p, x, y: p("div", p("ln", y), p("ln", x)), cost=8,
            derivative=Derivative(lambda p, g, z, x, y: (
                -(g * p("ln", y) / (x * (p("ln", x) * p("ln", x)))), g / (y * p("ln", x)),
            )),
        ),
        Primitive(
            "ln", 1, "float", "natural logarithm", Wording("logs", "log({})"), Notation("log", function="log"),
            cost=8, derivative=Derivative(lambda p, g, z, x: (g / x,)),
        ),
        Primitive(
            "sin", 1, "float", "sine", Wording("sines"), Notation("sin", function="sin"), cost=8, zeros="odd",
            derivative=Derivative(lambda p, g, z, x: (g * p("cos", x),)),
        ),
        Primitive(
            "cos", 1, "float", "cosine", Wording("cosines"), Notation("cos", function="cos"), cost=8, zeros="either",
            derivative=Derivative(lambda p, g, z, x: (-(g * p("sin", x)),)),
        ),
        Primitive(
            "tanh", 1, "float", "hyperbolic tangent", Wording("tangents"), Notation("tanh", function="tanh"), cost=8,
            zeros="odd", derivative=Derivative(lambda p, g, z, x: (g * p("sub", 1, z * z),)),
        ),
        Primitive(
            "erf", 1, "float", "error function", Wording("errors"), Notation(function="erf"), cost=8, zeros="odd",
            derivative=Derivative(lambda p, g, z, x: (g * (1.1283791670955126 * p("exp", -(x * x))),)),
        ),
        Primitive(
            "where", 3, "select", "the second where the first is true, else the third",
            Wording("choice", "({1} if {0} else {2})"), Notation("where", function="where"),
            derivative=Derivative(lambda p, g, z, test, x, y: (None, g.given(test), g.unless(test)), ""),
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
            "not", 1, "logic", "not", Wording("holds", "not {:atom}", "comparison"), Notation("logical_not", c="!"),
        ),
        Primitive("truth", 1, "logic", "truth", Wording("holds", "{:sum} != 0", "comparison")),
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

    @property
    def name(self) -> str:
        """The name of the primitive that it means."""
        return self.binary or self.unary


INFINITY = float("inf")

# fmt: off
OPS: dict[str, Op] = {
    op.symbol: op
    for op in (
        Op("+", "add", "copy", identity=0.0, reduction_says="sum", many="sums", letter="Σ", word="sum",
           mode="sum", numpy="sum"),
        Op("*", "mul", "copy", identity=1.0, reduction_says="product", many="products", letter="Π",
           word="product", mode="prod", numpy="prod"),
        Op("-", "sub", "neg"),
        Op("/", "div", "recip"),
        Op(">", "max", "max", 0.0, None, -INFINITY, reduction_says="maximum", many="maxima", letter="max",
           word="maximum", mode="max", numpy="max"),
        Op("<", "min", "min", 0.0, None, INFINITY, reduction_says="minimum", many="minima", letter="min",
           word="minimum", mode="min", numpy="min"),
        Op("^", "pow", "exp"),
        Op("$", "log", "ln"),
        Op(">>", "gt", "gt", None, 0.0),
        Op(">=", "gte", "gte", None, 0.0),
        Op("<<", "lt", "lt", None, 0.0),
        Op("<=", "lte", "lte", None, 0.0),
        Op("==", "eq", "eq", None, 0.0),
        Op("!=", "neq", "neq", None, 0.0),
        Op("&&", "and", "truth", identity=1.0, reduction_says="whether all hold", many="truth values",
           letter="all", word="every", mode="and", numpy="all"),
        Op("||", "or", "truth", identity=0.0, reduction_says="whether any holds", many="truth values",
           letter="any", word="some", mode="or", numpy="any"),
        Op("^^", "xor", "truth", identity=0.0, reduction_says="whether an odd number hold",
           many="truth values", letter="odd", word="parity", mode="xor"),
        Op("!!", None, "not"),
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
COSTS = {p.name: p.cost for p in PRIMITIVES.values() if p.cost}
"""The work of each primitive that has a cost; ``core/cost.py`` counts with it."""
SLOW = frozenset(p.name for p in PRIMITIVES.values() if p.kind == "float" and p.cost >= 8)
"""Functions of floats that take longer than moving what they are of."""
ROUNDED = {"tf32": "TF32", "bf16": "bf16"}
"""The names of the numbers that primitives round to, for matrix units."""
POWERS = {-1.0: "recip", 0.5: "sqrt", 2.0: "square"}
"""The primitives that a power by a literal is (docs/language.md section 4), by that number."""

SYMBOLS = tuple(sorted(OPS, key=lambda s: (-len(s), s)))
"""Operator spellings, longest first: the order in which a reader tries them."""
