"""What an inference hands to ``passes/graph_to_shaped.py``: extents as size numbers, and the projections of operations.

``extents.py`` gives one for index expressions and specifications, whose extents may come at run time;
``numbers.py`` one for graphs with rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from ilang.core.infer.projections import Loop, Projection
from ilang.core.ir.affine import Within
from ilang.core.ir.graph import Graph, Read
from ilang.core.ir.operation import Operation
from ilang.core.ir.shaped import Bound, Counted, Derivation, Size
from ilang.core.record import record


@record
class RowsOf:
    """A value as a specification sees it: its axes in memory order, ``batch`` of them first and ``inner`` last."""

    value: int
    axes: tuple[str, ...]
    batch: int
    inner: int


class Solved(ABC):
    """The extents of a graph; values and nodes are those of the graph, sizes are numbered from 0."""

    graph: Graph

    @abstractmethod
    def dims(self, value: int) -> tuple[int, ...]:
        """The size numbers of the dimensions of a value."""

    @abstractmethod
    def axes(self, value: int) -> tuple[int, ...]:
        """The size numbers of the axes of an assignment."""

    @abstractmethod
    def guards(self, value: int, read: Read) -> tuple[Within, ...]:
        """What must hold for a read of an assignment to stay in its dimensions, where that is not known."""

    @abstractmethod
    def projections(self, value: int, node: Operation) -> list[Projection]:
        """The projections of an operation."""

    @abstractmethod
    def size_of(self, loop: Loop) -> int:
        """The size number of a loop of a projection."""

    @abstractmethod
    def fixed(self, size: int) -> int | None:
        """The extent of a size number, or None where it comes at run time."""

    @abstractmethod
    def sizes(self, inputs: Sequence[int]) -> tuple[Size, ...]:
        """Every size that was asked for so far; ``inputs`` are the inputs that are kept, in order."""

    def derived(self) -> tuple[Derivation, ...]:
        """The extents that follow from others."""
        return ()

    def bounds(self) -> tuple[Bound, ...]:
        """What extents must reach."""
        return ()

    def guessed(self) -> tuple[int, ...]:
        """The sizes that nothing gives."""
        return ()

    def rows(self) -> Iterator[RowsOf]:
        """What specifications found, in the order of the graph."""
        return iter(())

    def counted(self) -> tuple[Counted, ...]:
        """What is known of row variables, in the order in which they were found."""
        return ()
