"""The extents of index expressions and of specifications over arrays, which have dimensions and no rows.

Ranks are found first (``ranks.py``), then extents (``extents.py``): numbers where they are written,
else run-time sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.infer.counting import axis_says, variable_says
from ilang.core.infer.extents import Extents
from ilang.core.infer.projections import Loop, Measure, Projection, Specified
from ilang.core.infer.ranks import infer_ranks, undetermined
from ilang.core.infer.solved import RowsOf, Solved
from ilang.core.ir.affine import Within
from ilang.core.ir.graph import Graph, Read
from ilang.core.ir.operation import Einsum, Operation
from ilang.core.ir.rows import MEMORY_ORDER
from ilang.core.ir.shaped import Bound, Counted, Derivation, Size
from ilang.core.source import Span


def solve_flat(graph: Graph, ranks: Sequence[int | None] | None) -> Solved:
    """The extents of a graph without rows; ``ranks`` are those of the arrays, None for one that is not there.

    Raises:
        ShapeError: E0501 to E0509, E0515, E0521, E0570, E0571.
    """
    return _Flat(graph, ranks)


class _Flat(Solved):
    """The ranks and the sizes of a graph without rows."""

    def __init__(self, graph: Graph, ranks: Sequence[int | None] | None) -> None:
        self.graph = graph
        self.found = infer_ranks(graph, ranks)
        if None in self.found.of:
            ranks = self.found.of
            open_inputs = [n for n, value in enumerate(graph.inputs) if ranks[value] is None]
            raise undetermined(graph, next(iter(open_inputs), 0))
        self.ranks = [rank for rank in self.found.of if rank is not None]
        self.extents = Extents(graph, self.ranks, self.found.lengths)

    def dims(self, value: int) -> tuple[int, ...]:
        return tuple(self.extents.of(value, dim) for dim in range(self.ranks[value]))

    def axes(self, value: int) -> tuple[int, ...]:
        node = self.graph.nodes[value]
        count = len(getattr(node, "axes", ()))
        return tuple(self.extents.of_axis(value, axis) for axis in range(count))

    def guards(self, value: int, read: Read) -> tuple[Within, ...]:
        return self.extents.guards(value, read)

    def projections(self, value: int, node: Operation) -> list[Projection]:
        assert isinstance(node.logic, Einsum)
        rows = self.extents.specifications[value].rows
        values = (*node.operands, value)
        shapes = [_rows(self.dims(each), its) for each, its in zip(values, rows, strict=True)]
        return list(Specified(node.logic.spec, shapes, _RunTime(self.extents, value)).run())

    def size_of(self, loop: Loop) -> int:
        assert loop.size is not None
        return loop.size

    def fixed(self, size: int) -> int | None:
        return self.extents.sizes[size].fixed

    def sizes(self, inputs: Sequence[int]) -> tuple[Size, ...]:
        return self.extents.sizes

    def derived(self) -> tuple[Derivation, ...]:
        return tuple(self.extents.derived)

    def bounds(self) -> tuple[Bound, ...]:
        return self.extents.bounds

    def guessed(self) -> tuple[int, ...]:
        return self.extents.guessed_sizes()

    def rows(self) -> Iterator[RowsOf]:
        for value, found in self.extents.specifications.items():
            node = self.graph.nodes[value]
            assert isinstance(node, Operation)
            for each, (batch, inner, output) in zip(
                (*node.operands, value), found.rows, strict=True
            ):
                axes = tuple(map(axis_says, (*batch, *output, *inner)))
                yield RowsOf(each, axes, len(batch), len(inner))

    def counted(self) -> tuple[Counted, ...]:
        found, assumed = self.found, frozenset(self.found.assumed)
        return tuple(
            Counted(
                variable_says(variable[1]),
                length,
                found.reasons[variable],
                variable in assumed,
                self.graph.nodes[variable[0]].span,
            )
            for variable, length in found.lengths.items()
        )


class _RunTime(Measure):
    """Sizes of an einsum operation that come at run time, as size numbers."""

    def __init__(self, extents: Extents, value: int) -> None:
        self.extents = extents
        self.value = value

    def label(self, name: str) -> int:
        return self.extents.of_label(self.value, name)

    def extent(self, size: int) -> int | None:
        return self.extents.sizes[size].fixed

    def loop(self, name: str, size: int) -> Loop | None:
        return Loop(name, self.extent(size), size)

    def half_size(self, dilation: int, size: int, span: Span) -> int:
        return self.extents.half(dilation, size, span)


def _rows(dims: Sequence[int], rows: Sequence[Sequence[object]]) -> list[list[int]]:
    """The size numbers of three rows, from those of the dimensions in memory order."""
    found: dict[int, list[int]] = {}
    first = 0
    for kind in MEMORY_ORDER:
        found[kind] = list(dims[first : first + len(rows[kind])])
        first += len(rows[kind])
    return [found[kind] for kind in range(len(rows))]
