"""The extents of a graph with rows, once they are solved: a size number per extent and per run-time size."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.infer.operations import Inferred
from ilang.core.infer.projections import Loop, Projection, project
from ilang.core.infer.solved import Solved
from ilang.core.ir.affine import Within, inside
from ilang.core.ir.graph import Read
from ilang.core.ir.operation import Operation
from ilang.core.ir.shaped import Bound, Derivation, Place, Size


def solved_rows(inferred: Inferred) -> Solved:
    """The extents of solved rows; sizes are numbered as they are asked for."""
    return _Numbers(inferred)


class _Numbers(Solved):
    """The sizes that were asked for so far."""

    def __init__(self, inferred: Inferred) -> None:
        self.graph = inferred.graph
        self.inferred = inferred
        self.numbers = inferred.numbered()

    def dims(self, value: int) -> tuple[int, ...]:
        return tuple(map(self.numbers.of, self.inferred.axes(value)))

    def axes(self, value: int) -> tuple[int, ...]:
        return tuple(map(self.numbers.of, self.inferred.walked(value)))

    def guards(self, value: int, read: Read) -> tuple[Within, ...]:
        if self.inferred.stays(value, read):
            return ()
        moving = [dim for dim, index in enumerate(read.index) if index.terms]
        dims = self.dims(read.value)
        return inside([read.index[dim] for dim in moving], [dims[dim] for dim in moving])

    def projections(self, value: int, node: Operation) -> list[Projection]:
        return project(self.inferred, value, self.numbers)

    def size_of(self, loop: Loop) -> int:
        return self.numbers.of_number(loop.extent or 0) if loop.size is None else loop.size

    def fixed(self, size: int) -> int | None:
        return self.numbers.fixed(size)

    def sizes(self, inputs: Sequence[int]) -> tuple[Size, ...]:
        places: dict[int, list[Place]] = {}
        for number, value in enumerate(inputs):
            span = self.graph.nodes[value].span
            for dim, size in enumerate(self.dims(value)):
                places.setdefault(size, []).append(Place(number, dim, span))
        self.computed = [
            self.numbers.derivation(known, derived)
            for known, derived in self.inferred.run_time.derived
        ]
        self.reached = [self.numbers.bound(reach) for reach in self.inferred.run_time.reaches]
        return self.numbers.table(places)

    def derived(self) -> tuple[Derivation, ...]:
        return (*self.computed, *self.numbers.derived)

    def bounds(self) -> tuple[Bound, ...]:
        return tuple(self.reached)
