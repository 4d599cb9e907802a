"""What the inference hands to ``passes/graph_to_shaped.py``: extents as size numbers, and projections of operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ilang.core.infer.counting import axis_says, variable_says
from ilang.core.infer.inferred import Inferred
from ilang.core.infer.letters import Letters, named_axes
from ilang.core.infer.projections import Loop, Projection, project
from ilang.core.ir.affine import Within, inside
from ilang.core.ir.graph import Assignment, Node, Read
from ilang.core.ir.operation import Operation
from ilang.core.ir.rows import Known
from ilang.core.ir.shaped import Bound, Counted, Derivation, Place, Size
from ilang.core.record import record, replace


@record
class RowsOf:
    """A value as a specification sees it: its axes in memory order, ``batch`` of them first and ``inner`` last."""

    value: int
    axes: tuple[str, ...]
    batch: int
    inner: int


class Solved:
    """The extents of a graph; values and nodes are those of the graph, sizes are numbered from 0."""

    def __init__(self, inferred: Inferred) -> None:
        """Number the sizes of every value and axis; further ones as they are asked for."""
        self.graph = inferred.graph
        self.inferred = inferred
        self.numbers = inferred.numbered()

        self.letters = Letters(self.graph, inferred.counted)
        self._dims: dict[int, tuple[int, ...]] = {}
        self._name()

    def _name(self) -> None:
        """Number the sizes in the order in which values, then their axes, have them; written names come first."""
        named: dict[int, tuple[Known, str]] = {}
        for claim in reversed(
            self.graph.claims
        ):  # the outermost definition is the last: its words win
            if claim.dims is None:
                continue
            for known, word in zip(self.inferred.axes(claim.value), claim.dims, strict=True):
                if isinstance(word, str):
                    named.setdefault(self.numbers.cell(known), (known, word))
        found: dict[int, tuple[Known, str]] = {}
        for value, node in enumerate(self.graph.nodes):
            for known, letter in self._words(value, node):
                cell = self.numbers.cell(known)
                if not found.get(cell, (known, ""))[1]:
                    found[cell] = (known, letter)
        chosen = {
            cell: self.numbers.unique.fresh(named[cell][1]) for cell in found if cell in named
        }
        for cell, (known, letter) in found.items():
            self.numbers.add(known, chosen.get(cell) or self.numbers.unique.fresh(letter or "n"))

    def _words(self, value: int, node: Node) -> Iterator[tuple[Known, str]]:
        """The axes of a value, then those of its node, and what the text calls them."""
        for dim, known in enumerate(self.inferred.axes(value)):
            yield known, self.letters.of(value, dim)[0]
        if isinstance(node, Assignment):
            for known, axis in zip(self.inferred.walked(value), node.axes, strict=True):
                yield known, axis.name
        rows = self.inferred.counted(value)
        for key in () if rows is None else named_axes(rows):
            yield self.inferred.label(value, key), key if isinstance(key, str) else key.name()

    def dims(self, value: int) -> tuple[int, ...]:
        """The size numbers of the dimensions of a value."""
        found = self._dims.get(value)
        if found is None:
            found = self._dims[value] = tuple(map(self.numbers.of, self.inferred.axes(value)))
        return found

    def axes(self, value: int) -> tuple[int, ...]:
        """The size numbers of the axes of an assignment."""
        return tuple(map(self.numbers.of, self.inferred.walked(value)))

    def guards(self, value: int, read: Read) -> tuple[Within, ...]:
        """What must hold for a read of an assignment to stay in its dimensions, where that is not known."""
        moving = [
            dim for dim, index in enumerate(read.index) if index.terms and not index.is_whole()
        ]
        if not moving or self.inferred.stays(value, read):
            return ()
        dims = self.dims(read.value)
        return inside([read.index[dim] for dim in moving], [dims[dim] for dim in moving])

    def projections(self, value: int, node: Operation) -> list[Projection]:
        """The projections of an operation."""
        return project(self.inferred, value, self.numbers)

    def size_of(self, loop: Loop) -> int:
        """The size number of a loop of a projection."""
        return self.numbers.once() if loop.size is None else loop.size

    def fixed(self, size: int) -> int | None:
        """The extent of a size number, or None where it comes at run time."""
        return self.numbers.fixed(size)

    def sizes(self, inputs: Sequence[int]) -> tuple[Size, ...]:
        """Every size; ``inputs`` are the inputs that are kept, in order."""
        places: dict[int, list[Place]] = {}
        for number, value in enumerate(inputs):
            for dim, size in enumerate(self.dims(value)):
                span = self.letters.of(value, dim)[1]
                places.setdefault(size, []).append(Place(number, dim, span))
        run_time = self.inferred.run_time
        self.reached = [self.numbers.bound(reach) for reach in run_time.reaches]
        filled = {bound.size for bound in self.reached if bound.part is not None}
        found = [self.numbers.derivation(known, derived) for known, derived in run_time.derived]
        self.computed = [replace(d, least=1) if d.size in filled else d for d in found]
        return self.numbers.table(places)

    def guessed(self) -> tuple[int, ...]:
        """The sizes that nothing gives."""
        return tuple(sorted(set(map(self.numbers.of, self.inferred.run_time.guessed))))

    def rows(self) -> Iterator[RowsOf]:
        """What specifications found, in the order of the graph."""
        for value, node in enumerate(self.graph.nodes):
            found = self.inferred.counted(value)
            if found is None or not isinstance(node, Operation):
                continue
            for each, (batch, inner, output) in zip((*node.operands, value), found, strict=True):
                axes = tuple(map(axis_says, (*batch, *output, *inner)))
                yield RowsOf(each, axes, len(batch), len(inner))

    def counted(self) -> tuple[Counted, ...]:
        """What is known of row variables, in the order in which they were found."""
        found = self.inferred.arrays.ranks
        if found is None:
            return ()
        assumed = frozenset(found.assumed)
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

    def derived(self) -> tuple[Derivation, ...]:
        """The extents that follow from others."""
        return (*self.computed, *self.numbers.derived)

    def bounds(self) -> tuple[Bound, ...]:
        """What extents must reach."""
        return tuple(self.reached)
