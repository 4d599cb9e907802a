"""A shaped program that is changed and extended: its values keep their numbers, and new ones have the numbers after."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.assignments import ordered
from ilang.core.ir.graph import Axis, Groups
from ilang.core.ir.ids import ValueId
from ilang.core.ir.shaped import Assignment, Derivation, Node, Shaped, Size, Tensor, View
from ilang.core.names import Names
from ilang.core.record import replace


class ExtendedProgram:
    """Nodes, tensors and sizes: those of a program, and more."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self.nodes: list[Node] = list(shaped.nodes)
        self.tensors: list[Tensor] = list(shaped.tensors)
        self.sizes: list[Size] = list(shaped.sizes)
        self._names = Names(frozenset(tensor.name for tensor in shaped.tensors))
        self._size_names = Names(frozenset(size.name for size in shaped.sizes))

    def add(self, node: Node, of: ValueId, dims: Sequence[int], ending: str) -> ValueId:
        """A new value, with elements of another one, whose name it has with an ending."""
        tensor = self.tensors[of]
        self.nodes.append(node)
        name = self._names.fresh(f"{tensor.name}_{ending}")
        self.tensors.append(Tensor(name, tensor.dtype, tuple(dims), of=tensor.origin()))
        return ValueId(len(self.nodes) - 1)

    def add_size(self, name: str, extent: int | None, of: tuple[str, ...] = ()) -> int:
        """A new size; ``of`` are the names of those that it is made of."""
        self.sizes.append(Size(self._size_names.fresh(name), extent, (), of))
        return len(self.sizes) - 1

    def view(self, value: ValueId, dims: Sequence[int], groups: Groups, node: Assignment) -> View:
        """The view of a value whose dimensions are groups of those that it has, for an assignment."""
        axes = tuple(Axis(self.sizes[size].name, None, node.span) for size in dims)
        alone = tuple((axis,) for axis in range(len(dims)))
        return View(value, axes, tuple(dims), alone, groups, node.text, node.span)

    def result(self, derived: Sequence[Derivation] = ()) -> Shaped:
        """The program without what nothing reads, each value after those that it reads, with more derived extents."""
        return ordered(
            replace(
                self.shaped,
                nodes=tuple(self.nodes),
                tensors=tuple(self.tensors),
                sizes=tuple(self.sizes),
                derived=(*self.shaped.derived, *derived),
            )
        )
