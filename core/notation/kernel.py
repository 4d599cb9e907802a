"""The reader of elementwise kernels: ``"f: x[i,j], y[j] -> x * y; sum: x + y"``.

    kernel     = order ":" input { "," input } "->" output { ";" output }
    order      = "f" | "c"                                   the last axes correspond, or the first ones
    input      = name [ "[" [ axis { "," axis } ] "]" ]      an axis for each dimension, as the order lines them up
    output     = [ accumulator [ rank ] ":" ] expression
    expression = term { ( "+" | "-" ) term }
    term       = factor { ( "*" | "/" ) factor }
    factor     = "-" factor | number | name | function "(" expression { "," expression } ")" | "(" expression ")"

A function is an operator of the language by its name, of two operands or of one, or a primitive: ``max(x, y)``,
``max(x)``, ``exp(x)``, ``where(lt(x, y), x, y)``. (PyTensor's Elemwise; docs/elementwise.md.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ilang.core.diagnostic import NotationError
from ilang.core.ir import syntax
from ilang.core.ir.scalar import Apply, Constant, Operand, Scalar, operations, pointwise
from ilang.core.limits import check_expressions
from ilang.core.notation.symbols import Symbols
from ilang.core.ops import NAMED, OPS, PRIMITIVES, Level
from ilang.core.source import Source, Span
from ilang.core.suggestion import did_you_mean

ACCUMULATORS = {op.mode: op.symbol for op in OPS.values() if op.mode}
"""Operators that fold, by the names that modes have for them."""
INFIX = {
    row.notation.sign: row
    for row in PRIMITIVES.values()
    if row.formula.level in ("sum", "product") and row.notation.sign
}
"""The operators between operands, by their signs."""
TOKEN = re.compile(
    r"\s+|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>->|\*(?!\*)|[-+/(),;:\[\]])"
)
EXAMPLE = "for example: `f: x[i,j], y[j] -> x * y; sum: x + y`"
ORDER_HELP = "f lines up the last axes of inputs, c the first ones; it comes first: `f: x -> x * x`"
DEEPEST = 100
"""Brackets in brackets at most."""
MOST = 16
"""Primitives of one scalar at most: an expression of more has steps, each a scalar that later ones read."""


def too_deep(span: Span | None) -> NotationError:
    """The error for an expression in too many brackets."""
    message = f"brackets are nested more than {DEEPEST} deep"
    return NotationError("E0180", message, span, "give a part an output of its own")


def parse_kernel(source: Source, span: Span | None = None) -> syntax.ElementKernel:
    """A whole kernel; ``span`` is the part of the source that it is (default: all).

    Raises:
        NotationError: E0180 (the form), E0181 (a name that none has), E0182 (a mode), E0183 (operands),
            E0184 (axes).
        MeaningError: E0250 (too many expressions), as soon as so many are read.
    """
    whole = span or Span(source, 0, len(source.text))
    reader = _KernelReader(source, whole)
    order = reader.order()
    inputs = [reader.input()]
    while reader.take(","):
        inputs.append(reader.input())
    reader.demand("->", "`,` or `->`")
    _check_inputs(inputs)
    _check_axes(order, inputs, reader.axes)
    reader.names = {each.name: number for number, each in enumerate(inputs)}
    outputs = [reader.output()]
    while reader.take(";"):
        outputs.append(reader.output())
    reader.finish("an operator, `;` or the end")
    return syntax.ElementKernel(order, tuple(inputs), tuple(outputs), whole.text(), whole)


def with_ranks(body: syntax.Tree, parameters: Sequence[syntax.NamedInput] | None) -> syntax.Tree:
    """The body of a definition; of a kernel the inputs have the ranks that the head of the definition writes."""
    if not isinstance(body, syntax.ElementKernel) or len(parameters or ()) != len(body.inputs):
        return body
    return body.ranked([None if p.dims is None else len(p.dims) for p in parameters or ()])


def order_of(text: object, span: Span | None = None) -> syntax.KernelOrder:
    """``f`` or ``c``. Raises NotationError E0182."""
    if isinstance(text, str) and text == "f":
        return "f"
    if isinstance(text, str) and text == "c":
        return "c"
    raise NotationError("E0182", f"{_given(text)} is no order of a kernel", span, ORDER_HELP)


def _given(value: object) -> str:
    """A value where a word is wanted."""
    if isinstance(value, int | float | None):
        return repr(value)
    return f"`{value}`" if isinstance(value, str) else f"a value of type {type(value).__name__}"


def accumulator(name: object, span: Span | None = None) -> str:
    """The operator that an accumulator is. Raises NotationError E0182."""
    symbol = ACCUMULATORS.get(name) if isinstance(name, str) else None
    if symbol is not None:
        return symbol
    reason = (
        " is not associative, or has no neutral element"
        if isinstance(name, str) and name in NAMED
        else " is no accumulator"
    )
    known = ", ".join(ACCUMULATORS)
    raise NotationError("E0182", f"{_given(name)}{reason}", span, f"accumulators are {known}")


WRITTEN = {
    "abs": "the absolute value is `max(x, -x)`",
    "relu": "it is `max(x, 0)`",
    "sigmoid": "it is `1 / (1 + exp(-x))`",
    "maximum": "it is `max(x, y)`",
    "minimum": "it is `min(x, y)`",
}
"""The help for functions of other systems that other functions make up."""


def _applied(name: str, operands: Sequence[Scalar], span: Span) -> Scalar:
    """A function of operands. Raises NotationError E0181 (there is none of this name), E0183 (not of so many)."""
    op = OPS.get(NAMED.get(name, ""))
    primitive = PRIMITIVES.get(name)
    if op is None and primitive is None:
        known = [*NAMED, *PRIMITIVES]
        listed = f"functions are {', '.join(dict.fromkeys(known))}"
        help_line = WRITTEN.get(name, did_you_mean(name, known, listed, "`{}`"))
        raise NotationError("E0181", f"there is no function `{name}`", span, help_line)
    takes = [1, 2] if op is not None and op.binary is not None else [1]
    if op is None:
        assert primitive is not None
        takes = [primitive.arity]
    if len(operands) not in takes:
        wanted = " or ".join(map(str, takes))
        plural = "s" if takes[-1] != 1 else ""
        message = f"`{name}` has {wanted} operand{plural}, and {len(operands)} are given"
        raise NotationError(
            "E0183", message, span, f"write `{name}({', '.join('xyz'[: takes[-1]])})`"
        )
    return pointwise(op.symbol, operands) if op is not None else Apply(name, tuple(operands))


def _check_inputs(inputs: Sequence[syntax.KernelInput]) -> None:
    """Refuse two inputs of one name. Raises NotationError E0181."""
    names: set[str] = set()
    for each in inputs:
        if each.name in names:
            message = f"two inputs of the kernel are called {each.name}"
            raise NotationError("E0181", message, each.span, "give each input a name of its own")
        names.add(each.name)


def _check_axes(
    order: syntax.KernelOrder, inputs: Sequence[syntax.KernelInput], axes: Mapping[str, list[str]]
) -> None:
    """Refuse axes that are not those which the order lines up. Raises NotationError E0184."""
    whole = max(axes.values(), key=len, default=[])
    for each in inputs:
        given = axes.get(each.name, [])
        spare = len(whole) - len(given)
        last, first = whole[spare:], whole[: len(given)]
        aligned = last if order == "f" else first
        repeated = next((axis for axis in given if 1 < given.count(axis)), None)
        if repeated is not None:
            message = (
                f"the input {each.name} has two axes {repeated}, and a kernel reads no diagonal"
            )
            help_line = "take it before the kernel: `ii~i >> elementwise(...)`"
            raise NotationError("E0184", message, each.span, help_line)
        if given == aligned:
            continue
        lined = f"{each.name}[{','.join(aligned)}]"
        message = f"in the order {order} the axes of {each.name} are {lined}"
        help_line = f"write `{lined}`"
        if given in (first, last):
            other = "c" if order == "f" else "f"
            help_line += f", or `{other}:`, the order which lines up the {'first' if other == 'c' else 'last'} axes"
        elif sorted(given) == sorted(aligned):
            help_line += "; transpose before the kernel: `ij~ji`"
        raise NotationError("E0184", message, each.span, help_line)


class _KernelReader(Symbols):
    """Symbols of a kernel, taken from the left."""

    code = "E0180"
    form = "expected {wanted} in the elementwise kernel before {shown}"
    usual = EXAMPLE

    def __init__(self, source: Source, whole: Span) -> None:
        super().__init__(source, whole, TOKEN)
        self.depth = 0
        self.names: dict[str, int] = {}
        """The inputs by name, each with its number."""
        self.axes: dict[str, list[str]] = {}
        """The axes of inputs, where they are written."""
        self.steps: list[Scalar] = []
        self.expressions = 0

    def strange(self, span: Span) -> NotationError:
        c = span.text()
        if span.source.text.startswith("**", span.start):
            span = Span(span.source, span.start, span.start + 2)
            c = "**"
        hints = {
            "**": "a power is `pow(x, 3)`, a square `square(x)`",
            ">": "`max(x, y)`, `gt(x, y)` and `gte(x, y)` are functions here",
            "<": "`min(x, y)`, `lt(x, y)` and `lte(x, y)` are functions here",
            "^": "a power is `pow(x, 3)`, a square `square(x)`",
            "=": "`eq(x, y)` is a function here",
        }
        message = f"`{c}` is no part of an elementwise kernel"
        return NotationError("E0180", message, span, hints.get(c, EXAMPLE))

    def word(self, wanted: str) -> tuple[str, Span]:
        """Take a word."""
        kind, text, span = self.peek()
        if kind != "word":
            raise self.unexpected(wanted)
        self.at += 1
        return text, span

    def order(self) -> syntax.KernelOrder:
        """``f:`` or ``c:``."""
        text, span = self.word("the order, `f:` or `c:`,")
        order = order_of(text, span)
        self.demand(":", "`:` after the order")
        return order

    def input(self) -> syntax.KernelInput:
        """``x`` or ``x[i,j]``."""
        name, span = self.word("the name of an input")
        self._count()
        if not self.take("["):
            return syntax.KernelInput(name, None, span)
        axes: list[str] = []
        while not self.take("]"):
            if axes:
                self.demand(",", "`,` or `]`")
            if self.peek()[0] not in ("word", "number"):
                raise self.unexpected("the name of an axis, or `]`")
            axes.append(self.peek().text)
            self.at += 1
        self.axes[name] = axes
        return syntax.KernelInput(name, len(axes), span.to(self.before()))

    def output(self) -> syntax.KernelOutput:
        """``x + y``, ``sum: x + y``, ``max 1: x``."""
        start = self.at
        acc, rank = self._mode()
        self.steps = []
        before = self.expressions
        scalar = self._sum()
        if self.expressions == before:  # an output without a primitive is an expression, too
            self._count()
        span = self.symbols[start].span.to(self.before())
        return syntax.KernelOutput((*self.steps, scalar), acc, rank, span.text(), span)

    def _short(self, scalar: Scalar) -> Scalar:
        """A primitive of operands, with steps in place of its longest arguments while it has too many primitives."""
        self._count()
        while isinstance(scalar, Apply) and MOST < operations(scalar):
            longest = max(scalar.arguments, key=operations)
            step = Operand(len(self.names) + len(self.steps))
            self.steps.append(longest)
            arguments = (step if each is longest else each for each in scalar.arguments)
            scalar = Apply(scalar.primitive, tuple(arguments))
        return scalar

    def _count(self) -> None:
        """Count an input, a primitive, or an output of none. Raises MeaningError E0250 (too many)."""
        self.expressions += 1
        check_expressions(self.expressions, self.whole, is_exact=False)

    def _mode(self) -> tuple[str | None, int | None]:
        """The mode before ``:``, where one stands."""
        after = self.peek(1)[1]
        ranked = after.isdigit() and self.peek(2)[1] == ":"
        if after != ":" and not ranked:
            return None, None
        name, span = self.word("an accumulator")
        rank = int(self.peek()[1]) if ranked else None
        self.at += 2 if ranked else 1
        if name == "broadcast":
            return None, None
        return accumulator(name, span), rank

    def _sum(self) -> Scalar:
        if DEEPEST < self.depth:
            raise too_deep(self.peek()[2])
        self.depth += 1
        scalar = self._operated("sum")
        self.depth -= 1
        return scalar

    def _operated(self, least: Level) -> Scalar:
        """Operands with operators between them that bind at least so tightly."""
        scalar = self._factor()
        levels = least, "product"
        while (row := INFIX.get(self.peek().text)) and (level := row.formula.level) in levels:
            self.at += 1
            right = self._factor() if level == "product" else self._operated("product")
            scalar = self._short(Apply(row.name, (scalar, right)))
        return scalar

    def _factor(self) -> Scalar:
        minus = 0
        while self.take("-"):
            minus += 1
        kind, text, span = self.peek()
        if kind == "number":
            self.at += 1
            scalar: Scalar = Constant(int(text) if text.isdigit() else float(text))
        elif kind == "word":
            self.at += 1
            scalar = self._named(text, span)
        elif self.take("("):
            scalar = self._sum()
            self.demand(")", "`)`")
        else:
            raise self.unexpected("an operand")
        return self._short(Apply("neg", (scalar,))) if minus % 2 else scalar

    def _named(self, name: str, span: Span) -> Scalar:
        if not self.take("("):
            if name not in self.names:
                message = f"the kernel has no input `{name}`"
                raise NotationError("E0181", message, span, f"inputs are {', '.join(self.names)}")
            return Operand(self.names[name])
        operands = [self._sum()]
        while self.take(","):
            operands.append(self._sum())
        self.demand(")", "`,` or `)`")
        applied = _applied(name, operands, span.to(self.before()))
        return self._short(applied)
