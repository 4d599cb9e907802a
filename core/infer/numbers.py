"""The extents of a graph with rows whose sizes are all solved: a size number per extent."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.infer.operations import Inferred
from ilang.core.infer.projections import Loop, Projection, project, sizes_of
from ilang.core.infer.solved import Solved
from ilang.core.ir.affine import Within
from ilang.core.ir.graph import Read
from ilang.core.ir.operation import Operation
from ilang.core.ir.shaped import Place, Size


def solved_rows(inferred: Inferred) -> Solved:
    """The extents of solved rows; sizes are numbered as they are asked for."""
    return _Numbers(inferred)


class _Numbers(Solved):
    """The sizes that were asked for so far."""

    def __init__(self, inferred: Inferred) -> None:
        self.graph = inferred.graph
        self.inferred = inferred
        self.numbers: dict[int, int] = {}
        self.extents: list[int] = []

    def dims(self, value: int) -> tuple[int, ...]:
        return tuple(map(self._size, sizes_of(self.inferred.shapes[value])))

    def axes(self, value: int) -> tuple[int, ...]:
        raise AssertionError(f"value {value} is no assignment")

    def guards(self, value: int, read: Read) -> tuple[Within, ...]:
        return ()

    def projections(self, value: int, node: Operation) -> list[Projection]:
        return project(self.inferred, value)

    def size_of(self, loop: Loop) -> int:
        return self._size(loop.extent or 0)

    def fixed(self, size: int) -> int | None:
        return self.extents[size]

    def sizes(self, inputs: Sequence[int]) -> tuple[Size, ...]:
        places: dict[int, list[Place]] = {}
        for number, value in enumerate(inputs):
            span = self.graph.nodes[value].span
            for dim, extent in enumerate(sizes_of(self.inferred.shapes[value])):
                places.setdefault(extent, []).append(Place(number, dim, span))
        return tuple(Size(f"n{n}", n, tuple(places.get(n, ()))) for n in self.numbers)

    def _size(self, extent: int) -> int:
        if extent not in self.numbers:
            self.numbers[extent] = len(self.extents)
            self.extents.append(extent)
        return self.numbers[extent]
