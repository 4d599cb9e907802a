"""Tensor expressions to the graph: leaves and operations that a user combined, solved together.

An expression is immutable and knows its operands, nothing else: shapes belong to what is solved together.

Example:
    in:   relu(w @ x + b), with x: 20|2 and b: 16
    out:  n0 = data x;  n1 = parameter w;  n2 = parameter b;  n3 = compose(n1, n0);  n4 = n3 + n2;  n5 = relu(n4)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ilang.core.ir.functions import Nested
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Fits, Logic, Operation, SizeConstraint, Terminal, TerminalKind
from ilang.core.ir.rows import KINDS, OPEN, Known, Origin
from ilang.core.ir.scalar import Scalar
from ilang.core.names import Names
from ilang.core.record import record
from ilang.core.source import SHAPES, Source, Span, whole
from ilang.core.walks import parts_first

Axis = tuple[int | str, str | None]
"""A known axis: its size, a word for one that comes at run time; and its label or None."""
Rows = tuple[tuple[Axis, ...] | None, tuple[Axis, ...] | None, tuple[Axis, ...] | None]
SCALAR: Rows = ((), (), ((1, None),))
"""The rows of a number."""


def literal_rows(term: Nested) -> Rows:
    """The axes of numbers in brackets."""
    batch, inner, output = (
        tuple((extent, None) for row, extent in term.levels if row == kind) for kind in range(3)
    )
    return batch, inner, output


@record
class Shape:
    """The sizes of the rows of a tensor."""

    batch: tuple[int, ...]
    input: tuple[int, ...]
    output: tuple[int, ...]

    def memory(self) -> tuple[int, ...]:
        """The extents in the order of storage: batch, output, input."""
        return self.batch + self.output + self.input


@record
class Leaf:
    """The parts of a leaf: its kind, its rows, its values (an array, one number, or None)."""

    name: str | None
    kind: TerminalKind
    rows: Rows
    values: Any

    def count(self) -> int | None:
        """The number of values of a leaf whose rows are inferred from them; None where nothing says so."""
        return None if self.kind == "data" else getattr(self.values, "size", None)


@record
class Made:
    """The parts of an operation, its operands aside."""

    scalar: Scalar
    acc: str
    logic: Logic
    text: str
    span: Span


class TensorExpression:
    """A leaf, or an operation on others. Two expressions are one only if they are the same object."""

    __slots__ = ("__weakref__", "node", "operands")

    def __init__(self, node: Leaf | Made, operands: tuple[TensorExpression, ...] = ()) -> None:
        """A leaf, or an operation with its operands."""
        self.node = node
        self.operands = operands

    @property
    def name(self) -> str:
        """The name in messages: the name of a leaf, or the text of an operation."""
        if isinstance(self.node, Made):
            return self.node.text
        if self.node.kind == "number":
            return str(self.node.values)
        return self.node.name or self.node.kind


INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "matmul": "@"}
"""Operations that are written between their operands."""
_LONGEST = 24
"""The longest operand that is repeated in the text of an operation."""


def made_of(
    logic: tuple[Scalar, str, Logic], text: str, operands: Sequence[TensorExpression]
) -> Made:
    """The parts of an operation on expressions; its text is ``text(operands)``, or as the user writes it."""
    sign = INFIX.get(text)
    words = [_word(operand, sign is not None) for operand in operands]
    written = f"{words[0]} {sign} {words[1]}" if sign else f"{text}({', '.join(words)})"
    return Made(*logic, written, whole(Source(SHAPES, written)))


def _word(operand: TensorExpression, inside: bool) -> str:
    """An operand in the text of an operation; ``inside`` others, what has a sign of its own stands in parentheses."""
    name = operand.name
    if len(name) > _LONGEST:
        return "…"
    node = operand.node
    if inside and isinstance(node, Made) and len(operand.operands) == 2 and node.text[-1:] != ")":
        return f"({name})"
    return name


def ordered(expressions: Sequence[TensorExpression]) -> list[TensorExpression]:
    """Expressions and all they are computed from, operands first, without recursion."""
    return list(parts_first(expressions, lambda expression: expression.operands))


def graph_of(
    expressions: Sequence[TensorExpression],
    constraints: Sequence[SizeConstraint],
    fits: Sequence[tuple[TensorExpression, TensorExpression]],
) -> tuple[Graph, dict[TensorExpression, int]]:
    """The graph of expressions and of all they are computed from, and the node of each; leaves with values come first.

    Args:
        expressions: what is solved together; leaves that several share are one.
        constraints: sizes of labels.
        fits: pairs of an expression and an operand that must fit it, as if it were assigned from that.
    """
    order = ordered([*expressions, *(each for pair in fits for each in pair)])
    inputs = [e for e in order if isinstance(e.node, Leaf) and e.node.kind != "number"]
    others = set(order) - set(inputs)
    number = {e: n for n, e in enumerate([*inputs, *(e for e in order if e in others)])}
    names = Names()
    nodes = tuple(_node(e, number, names) for e in number)
    pairs = [Fits(number[result], number[operand]) for result, operand in fits]
    graph = Graph(
        "tensor", nodes, tuple(range(len(inputs))), (), constraints=(*constraints, *pairs)
    )
    return graph, number


def _node(
    e: TensorExpression, number: Mapping[TensorExpression, int], names: Names
) -> Terminal | Operation:
    node = e.node
    if isinstance(node, Made):
        operands = tuple(number[operand] for operand in e.operands)
        return Operation(operands, node.scalar, node.acc, node.logic, node.text, node.span)
    if node.kind == "number":
        span = whole(Source(SHAPES, e.name))
        return Terminal(e.name, "number", (None, None, None), None, node.values, span)
    name = names.fresh(e.name)
    span, (batch, inner, output) = placed(name, node.rows)
    return Terminal(name, node.kind, (batch, inner, output), node.count(), None, span)


def placed(name: str, rows: Rows) -> tuple[Span, list[tuple[Known, ...] | None]]:
    """A leaf as messages show it, ``x: 20|4->2``: where it stands, and its known axes, each with its place."""
    text = f"{name}: "
    places: list[tuple[str, int, int, Axis, int]] = []
    for kind, after in ((0, "|"), (1, "->"), (2, "")):
        axes = rows[kind]
        if axes is None:
            text += "?"
        for number, axis in enumerate(axes or ()):
            text += "," if number else ""
            places.append((KINDS[kind], number, len(text), axis, kind))
            text += str(axis[0])
        text += after if axes is None or axes else ""
    source = Source(SHAPES, text if text[-2:] != ": " else f"{text}()")
    known: list[list[Known]] = [[], [], []]
    for kind_name, number, start, (size, label), kind in places:
        place = Span(source, start, start + len(str(size)))
        origin = Origin(f"{kind_name} axis {number} of {name}", place, "")
        known[kind].append(Known(OPEN if isinstance(size, str) else size, origin, label=label))
    rows_of = [None if rows[kind] is None else tuple(known[kind]) for kind in range(3)]
    return Span(source, 0, len(name)), rows_of
