"""The inputs of a graph that are arrays: dimensions without rows, whose extents may come at run time."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.infer.counting import LengthEquations
from ilang.core.infer.ranks import infer_ranks, input_ranks, undetermined
from ilang.core.ir.graph import Assignment, Elementwise, Graph, Input, View
from ilang.core.ir.operation import Operation, Terminal
from ilang.core.ir.rows import OPEN, Known, Origin, Var
from ilang.core.ir.spec import Spec


class ArrayAxes:
    """The axes of the arrays of a graph; ``given`` has all of them, their sizes numbered from 0."""

    def __init__(self, graph: Graph, ranks: Sequence[int | None] | None) -> None:
        """``ranks`` are those of the arrays, one per input, None for one that is not there.

        Raises:
            ShapeError: E0501, E0502, E0503, E0508.
        """
        self.axes: dict[int, tuple[Known, ...]] = {}
        self.given: list[Known] = []
        self.flat = _flat_values(graph)
        inputs = [value for value in graph.inputs if isinstance(graph.nodes[value], Input)]
        self.ranks: LengthEquations | None = None
        if self.flat == set(range(len(graph.nodes))):
            self.ranks = infer_ranks(graph, ranks)
            known_ranks = list(map(self.ranks.rank, graph.inputs))
        else:
            known_ranks = input_ranks(graph, ranks) if inputs else []
        self.rows = {
            value: tuple(map(self._numbered, node.rows))
            for value, node in enumerate(graph.nodes)
            if isinstance(node, Terminal)
        }
        for value in inputs:
            rank, name = known_ranks[value], graph.input_name(value)
            if rank is None:
                raise undetermined(graph, value)
            axes = []
            for dim in range(rank):
                origin = Origin(f"dimension {dim} of {name}", graph.nodes[value].span)
                axes.append(Known(Var(len(self.given) + dim), origin))
            self.given += axes
            self.axes[value] = tuple(axes)

    def _numbered(self, axes: tuple[Known, ...] | None) -> tuple[Known, ...] | None:
        """A row of a leaf, with a number for each size that comes at run time."""
        if axes is None or all(axis.size != OPEN for axis in axes):
            return axes
        numbered = []
        for axis in axes:
            known = axis
            if axis.size == OPEN:
                known = Known(Var(len(self.given)), axis.origin)
                self.given.append(known)
            numbered.append(known)
        return tuple(numbered)

    def count(self, value: int, variable: str) -> int | None:
        """The number of axes that a row variable of a specification stands for, where ranks say it."""
        return None if self.ranks is None else self.ranks.counted[value, variable].length


def _flat_values(graph: Graph) -> set[int]:
    """The values that are arrays: nothing that they are computed from has rows."""
    flat: set[int] = set()
    for value, node in enumerate(graph.nodes):
        match node:
            case Input() | Assignment() | View():
                flat.add(value)
            case Elementwise():
                if node.value in flat:
                    flat.add(value)
            case Operation(logic=Spec()):
                if flat.issuperset(node.operands):
                    flat.add(value)
            case _:
                pass
    return flat
