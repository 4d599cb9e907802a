"""Names in the text of the dimensions of values: the letters by which each is first read, or given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.infer.counting import Flat, RowAxis
from ilang.core.ir.graph import Assignment, Graph, View
from ilang.core.ir.operation import Operation
from ilang.core.ir.rows import MEMORY_ORDER
from ilang.core.ir.spec import Axis, ShapeSpec, Spec, names_of
from ilang.core.source import Span

Key = str | RowAxis
"""An axis of a specification: a label, or one that a row variable stands for."""
RowsOf = Callable[[int], Sequence[Flat] | None]
"""The axes of the shapes of the specification of a node, where its row variables are counted."""


class Letters:
    """The letters of the dimensions of a graph, and where they stand."""

    def __init__(self, graph: Graph, rows: RowsOf) -> None:
        self.graph = graph
        self.rows = rows
        self._first: dict[int, list[tuple[str, Span]]] = {}
        self._results: dict[int, list[tuple[str, Span]]] = {}
        for value, node in enumerate(graph.nodes):
            if isinstance(node, Assignment):
                for read in node.reads:
                    letters = list(zip(_letters(node, read.index), read.spans, strict=True))
                    self._first.setdefault(read.value, letters)
            elif isinstance(node, View):
                words = [(_joined(node, group), node.span) for group in node.source]
                self._first.setdefault(node.value, words)
            elif isinstance(node, Operation):
                shapes = self._shapes(value, node)
                for each, letters in zip(node.operands, shapes, strict=False):
                    self._first.setdefault(each, letters)
                if shapes:
                    self._results[value] = shapes[-1]

    def of(self, value: int, dim: int) -> tuple[str, Span]:
        """The letters of a dimension, and where they stand; none for a fixed index."""
        node = self.graph.nodes[value]
        if value in self._first:
            return self._first[value][dim]
        if isinstance(node, Assignment):
            return _letters(node, node.target)[dim], node.span
        if isinstance(node, View):
            return _joined(node, node.target[dim]), node.span
        result = self._results.get(value)
        return ("", node.span) if result is None else result[dim]

    def _shapes(self, value: int, node: object) -> list[list[tuple[str, Span]]]:
        rows = self.rows(value)
        if rows is None or not isinstance(node, Operation) or not isinstance(node.logic, Spec):
            return []
        shapes = zip(node.logic.shapes(), rows, strict=True)
        return [_shape_letters(shape, each) for shape, each in shapes]


def stored(rows: Sequence[Sequence[Axis | RowAxis]]) -> list[Axis | RowAxis]:
    """The axes of three rows in memory order."""
    return [axis for kind in MEMORY_ORDER for axis in rows[kind]]


def axis_keys(axis: Axis | RowAxis) -> tuple[Key, ...]:
    """The axes that one entry of a shape names."""
    return (axis,) if isinstance(axis, RowAxis) else names_of(axis)


def named_axes(rows: Sequence[Flat]) -> Iterator[Key]:
    """The axes that a specification names, in the order in which its shapes have them."""
    yield from dict.fromkeys(
        key for each in rows for axis in stored(each) for key in axis_keys(axis)
    )


def _joined(node: View, group: Sequence[int]) -> str:
    """The name in sizes of a dimension of several axes."""
    return _one_word([node.axes[axis].name for axis in group])


def _one_word(names: Sequence[str]) -> str:
    """Names in a row: letters as they are, words apart."""
    return ("" if all(len(name) == 1 for name in names) else "_").join(names)


def _axis_letters(axis: Axis | RowAxis) -> str:
    """The name in pages and sizes of the dimension that an axis walks; empty for a fixed index and a blank."""
    if isinstance(axis, RowAxis):
        return axis.name()
    return _one_word([key if isinstance(key, str) else key.name() for key in axis_keys(axis)])


def _shape_letters(
    shape: ShapeSpec, rows: Sequence[Sequence[Axis | RowAxis]]
) -> list[tuple[str, Span]]:
    """The letters of each dimension in memory order, and where they stand."""
    return [
        (_axis_letters(axis), shape.span if isinstance(axis, RowAxis) else axis.span)
        for axis in stored(rows)
    ]


def _letters(node: Assignment, index: Sequence[Affine]) -> list[str]:
    return ["".join(node.axes[axis].name for axis in part.variables()) for part in index]
