"""Graphs that mix index expressions, specifications and operations between tensors, made node by node."""

from __future__ import annotations

import re

from ilang.core import pipeline
from ilang.core.ir.graph import Assignment, Axis, Elementwise, Graph, Input, Node, View
from ilang.core.ir.operation import Logic, Operation, Terminal, TerminalKind
from ilang.core.ir.rows import Known, Origin
from ilang.core.ir.scalar import Apply, Operand
from ilang.core.notation.einsum.specification import parse_spec
from ilang.core.record import replace
from ilang.core.source import Source, whole

AT = whole(Source("<test>", "text"))


class Mixing:
    """A graph under construction: arrays, then leaves, then what is made of them."""

    def __init__(self, inputs: int = 0) -> None:
        self.nodes: list[Node] = []
        self.inputs = 0
        for _ in range(inputs):
            self.array()

    def array(self) -> int:
        """An array, before anything that is computed."""
        self.inputs += 1
        return self._add(Input(None, AT))

    def leaf(
        self,
        *rows: tuple[int, ...] | None,
        kind: TerminalKind = "data",
        elements: int | None = None,
    ) -> int:
        """A leaf with batch, input and output axes, or so many elements, before anything that is computed."""
        known = [None if row is None else tuple(map(_known, row)) for row in rows]
        count = sum(isinstance(node, Terminal) for node in self.nodes)
        name = f"leaf{count + 1}" if count else "leaf"
        self.inputs += 1
        return self._add(Terminal(name, kind, (known[0], known[1], known[2]), elements, None, AT))

    def number(self, value: int) -> int:
        """A number, which stretches."""
        return self._add(Terminal(str(value), "number", (None, None, None), None, value, AT))

    def index(self, text: str, *values: int) -> int:
        """An index expression, or a chain of them, of one output."""
        graph = pipeline.graph_of(pipeline.text_component(text), "part")
        number = dict(enumerate(values))
        for value, node in enumerate(graph.nodes):
            match node:
                case Assignment():
                    reads = tuple(replace(r, value=number[r.value]) for r in node.reads)
                    number[value] = self._add(replace(node, reads=reads))
                case Elementwise():
                    number[value] = self._add(replace(node, value=number[node.value]))
                case _:
                    assert isinstance(node, Input)
        return number[graph.outputs[0]]

    def operation(self, logic: Logic, *values: int, primitive: str = "") -> int:
        """An operation; two operands are added unless a primitive is named."""
        name = primitive or ("mul" if logic == "compose" else "add")
        scalar = Apply(name, (Operand(0), Operand(1))) if len(values) == 2 else Operand(0)
        return self._add(Operation(values, scalar, "+", logic, type(logic).__name__, AT))

    def einsum(self, text: str, *values: int) -> int:
        """A specification: a sum of products."""
        spec = parse_spec(Source("<spec>", text))
        scalar = Apply("mul", (Operand(0), Operand(1))) if len(values) == 2 else Operand(0)
        return self._add(Operation(values, scalar, "+", spec, text, spec.span))

    def view(self, text: str, value: int, **extents: int) -> int:
        """A view, ``(a b) c -> a (b c)``, of which some axes have extents that are written."""
        span = whole(Source("<view>", text))
        sides = [re.findall(r"\(([^)]*)\)|(\w+)", side) for side in text.split("->")]
        source, target = ([(group or name).split() for group, name in side] for side in sides)
        names = [name for group in source for name in group]
        axes = tuple(Axis(name, extents.get(name), span) for name in names)
        groups = (
            tuple(tuple(map(names.index, group)) for group in side) for side in (source, target)
        )
        before, after = groups
        return self._add(View(value, axes, before, after, span.text(), span))

    def graph(self, *outputs: int) -> Graph:
        """The graph, of which some values are asked."""
        return Graph("mixed", tuple(self.nodes), tuple(range(self.inputs)), outputs)

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1


def _known(size: int) -> Known:
    return Known(size, Origin(f"an axis of {size}", AT))
