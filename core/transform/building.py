"""A shaped program under construction: the nodes of another, and more."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from ilang.core.calculus.affine import Affine, Within, axis_index, size_value
from ilang.core.dtype import accumulator
from ilang.core.ir import scalar as scalars
from ilang.core.ir.assignments import in_order, reindexed, sources, whole_index, writes_all
from ilang.core.ir.graph import Axis
from ilang.core.ir.ids import ValueId
from ilang.core.ir.shaped import Assignment, Input, Node, Read, Shaped, Size, Tensor, View
from ilang.core.names import Names
from ilang.core.record import replace
from ilang.core.source import Span
from ilang.core.walks import reached

MOST = 2
"""Axes in an index of the target, at most, of which one is solved for."""


class ProgramBuilder:
    """Nodes, tensors and sizes; a value is the number of its node."""

    def __init__(self, sizes: Sequence[Size]) -> None:
        self.nodes: list[Node] = []
        self.tensors: list[Tensor] = []
        self.sizes = list(sizes)
        self.names = Names()

    def add(self, node: Node, name: str, dtype: str, dims: Sequence[int]) -> ValueId:
        """Add a node; its value."""
        self.nodes.append(node)
        self.tensors.append(Tensor(self.names.fresh(name), dtype, tuple(dims)))
        return ValueId(len(self.nodes) - 1)

    def fixed(self, size: int) -> int | None:
        """The extent of a size, where it is a number."""
        return self.sizes[size].fixed

    def owner(self, value: ValueId) -> ValueId:
        """The value whose memory a value is: what a view is of."""
        while isinstance(node := self.nodes[value], View):
            value = node.value
        return value

    def once(self) -> int:
        """The number of a size of extent 1."""
        for number, size in enumerate(self.sizes):
            if size.fixed == 1:
                return number
        names = Names(frozenset(size.name for size in self.sizes))
        self.sizes.append(Size(names.fresh("once"), 1, ()))
        return len(self.sizes) - 1

    def whole(
        self, dims: Sequence[int], span: Span
    ) -> tuple[tuple[Axis, ...], tuple[int, ...], tuple[Affine, ...]]:
        """Axes, their sizes, and the index that walks every dimension; one of extent 1 has no axis."""
        long, index = whole_index(dims, self.fixed)
        axes = tuple(Axis(f"o{dim}", None, span) for dim in long)
        return axes, tuple(dims[dim] for dim in long), index

    def pointwise(
        self,
        values: Sequence[ValueId],
        scalar: scalars.Scalar,
        dims: Sequence[int],
        name: str,
        text: str,
        span: Span,
    ) -> ValueId:
        """A scalar function of the same element of several tensors of these dimensions."""
        axes, sizes, index = self.whole(dims, span)
        reads = tuple(Read(value, index) for value in values)
        assert scalar.dtype is not None
        node = Assignment(axes, sizes, index, reads, scalar, None, None, text, span)
        return self.add(node, name, scalar.dtype, dims)

    def filled(
        self, number: float, dtype: str, dims: Sequence[int], name: str, span: Span
    ) -> ValueId:
        """A tensor of one number."""
        return self.pointwise((), scalars.Constant(number, dtype), dims, name, f"{number:g}", span)

    def copied(self, value: ValueId, dtype: str, name: str, text: str, span: Span) -> ValueId:
        """A tensor in memory of its own, in some type."""
        tensor = self.tensors[value]
        scalar: scalars.Scalar = scalars.Operand(0, tensor.dtype)
        scalar = scalar if dtype == tensor.dtype else scalars.Convert(scalar, dtype)
        return self.pointwise((value,), scalar, tensor.dims, name, text, span)

    def own(
        self, value: ValueId, taken: Container[ValueId], dtype: str, name: str, span: Span
    ) -> ValueId:
        """A value in memory of its own: a copy of one that is an input, or in memory that is taken."""
        owner = self.owner(value)
        if owner in taken or isinstance(self.nodes[owner], Input):
            return self.copied(value, dtype, name, name, span)
        return value

    def program(self, of: Shaped, name: str, outputs: Sequence[ValueId]) -> Shaped:
        """The program of all nodes, in place of one that it is made of."""
        inputs = (ValueId(n) for n, node in enumerate(self.nodes) if isinstance(node, Input))
        return replace(
            of,
            name=name,
            nodes=tuple(self.nodes),
            tensors=tuple(self.tensors),
            sizes=tuple(self.sizes),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
        )

    def accumulated(
        self,
        node: Assignment,
        dtype: str,
        dims: Sequence[int],
        name: str,
        factor: int | None = None,
    ) -> ValueId:
        """A sum: ``node`` says over which axes, of which scalar, and where it is stored.

        Where every element is met once it is the assignment itself. Where none is met twice it is stored among zeros;
        else it accumulates into zeros, in the type that sums accumulate in, and is rounded at the end.
        """
        held = accumulator("+", dtype)
        node = self._turned(_gathered(node, dims, factor))
        if self._is_whole(node, dims):
            reduced = bool(node.reduced_axes())
            if node.guards and not reduced:
                node = replace(
                    node,
                    axes=(*node.axes, Axis("once", None, node.span)),
                    sizes=(*node.sizes, self.once()),
                )
                reduced = True
            acc = "+" if reduced else None
            return self.add(replace(node, acc=acc, base=None), name, dtype, dims)
        if self._is_apart(node):
            zeros = self.filled(0.0, dtype, dims, f"{name}_zeros", node.span)
            return self.add(replace(node, acc=None, base=zeros), name, dtype, dims)
        zeros = self.filled(0.0, held, dims, f"{name}_zeros", node.span)
        scalar = node.scalar if held == dtype else scalars.Convert(node.scalar, held)
        onto = replace(node, scalar=scalar, acc="+", base=zeros)
        total = self.add(onto, name, held, dims)
        return total if held == dtype else self.copied(total, dtype, name, node.text, node.span)

    def _turned(self, node: Assignment) -> Assignment:
        """The assignment in which no dimension is read backwards: a copy has it the other way round.

        Neither lanes nor packing read backwards, and what is read so here, the weights of a window, is small.
        """
        kept = set(node.output_axes())
        reads = [self._forwards(read, kept, node.span) for read in node.reads]
        return replace(node, reads=tuple(reads))

    def _forwards(self, read: Read, kept: set[int], span: Span) -> Read:
        """A read of a tensor, or of a copy of it that is turned round where it was read backwards.

        The copy has the dimensions last that axes of the result walk, ``kept``: they are those of lanes.
        """
        tensor = self.tensors[read.value]
        dims = range(len(tensor.dims))
        back = [
            _is_backwards(part, size) for part, size in zip(read.index, tensor.dims, strict=True)
        ]
        if not any(back):
            return read
        order = sorted(dims, key=lambda dim: bool(read.index[dim].axes() & kept))
        sizes = [tensor.dims[dim] for dim in order]
        axes, extents, target = self.whole(sizes, span)
        source = [target[order.index(dim)] for dim in dims]
        index = tuple(
            _backwards(part, size) if turned else part
            for part, size, turned in zip(source, tensor.dims, back, strict=True)
        )
        reads, scalar = (Read(read.value, index),), scalars.Operand(0, tensor.dtype)
        text = f"{tensor.name} turned round"
        assignment = Assignment(axes, extents, target, reads, scalar, None, None, text, span)
        copy = self.add(assignment, tensor.name, tensor.dtype, sizes)
        faced = tuple(
            axis_index(*read.index[dim].variables()) if back[dim] else read.index[dim]
            for dim in order
        )
        return Read(copy, faced, read.guards)

    def _is_whole(self, node: Assignment, dims: Sequence[int]) -> bool:
        """Whether the target walks every dimension whole, each by an axis of its own."""
        return writes_all(node, dims, self.fixed)

    def _is_apart(self, node: Assignment) -> bool:
        """Whether no two iterations meet in an element: each axis goes on beyond what those of smaller steps reach."""
        for index in node.target:
            reach = 0.0
            for step, axis in sorted((abs(c), axis) for c, axis in index.steps()):
                extent = self.fixed(node.sizes[axis])
                if step <= reach or index.looked:
                    return False
                reach = math.inf if extent is None else reach + step * (extent - 1)
        return not node.reduced_axes()


def _backwards(part: Affine, size: int) -> Affine:
    """The index that walks a dimension from its end, where one walks it; that of an only element stays."""
    (axis,) = part.variables() or (None,)
    if axis is None:
        return part
    return replace(size_value(size) - 1 - axis_index(axis), window=True)


def _is_backwards(part: Affine, size: int) -> bool:
    """Whether an index walks a dimension from its end to its beginning."""
    return len(part.variables()) == 1 and part == _backwards(part, size)


def pruned(shaped: Shaped) -> Shaped:
    """A program without the values that nothing needs; its inputs stay."""
    needed = reached(shaped.outputs, lambda value: sources(shaped.nodes[value]))
    kept = sorted(needed.union(shaped.inputs))
    return in_order(replace(shaped, rows=(), counted=()), kept)


# -- scatters into windows ---------------------------------------------------------------------------------------------


def _gathered(node: Assignment, dims: Sequence[int], factor: int | None = None) -> Assignment:
    """The same sum over axes of the target where its indices can be solved for axes, each for one of its own.

    Example, of the gradient of ``+(i+k)~i``, a sum over a window:
        in:   d[i + k] += g[i]                     for i k
        out:  d[p] = sum g[p + k - (K - 1)] over k     where that is in the extent of i; K is the extent of k

    A gather writes each element once, in any order, so it runs in parallel, in tiles, and in registers.

    Args:
        node: an accumulation whose target has affine indices.
        dims: the sizes of the dimensions of the target.
        factor: a read that is a factor of the scalar: where it is 0 there is nothing to add.
    """
    for dim, index in enumerate(node.target):
        if index.axis() is not None or not index.variables() or index.looked:
            continue
        axis = _solvable(node, dim)
        if axis is not None:
            node = _solved(node, dim, axis, dims[dim], factor)
    return node


def _solvable(node: Assignment, dim: int) -> int | None:
    """The axis that an index of the target is solved for: one of coefficient 1 that only this index has.

    Strides stay scatters: for most elements of the target they have no solution.
    """
    index = node.target[dim]
    if len(index.variables()) > MOST or any(abs(c) != 1 for c, _ in index.steps()):
        return None
    others = {axis for n, part in enumerate(node.target) if n != dim for axis in part.axes()}
    looked = {axis for each in node.indices() for axis in each.rests_on()}
    free = [axis for c, axis in index.steps() if c == 1 and axis not in others | looked]
    return free[0] if free else None


def _solved(node: Assignment, dim: int, axis: int, size: int, factor: int | None) -> Assignment:
    """The assignment with an axis over the dimension in place of ``axis``, and a guard that keeps that in its range.

    The new axis p has the old one's number: the old one is p - rest. Other axes of the index are turned round, so that
    the old one is p + rest, as it is of a window that reaches over the ends.
    """
    turned = {
        each: replace(size_value(node.sizes[each]) - 1 - axis_index(each), window=True)
        for each in node.target[dim].variables()
        if each != axis
    }
    node = reindexed(node, turned)
    index = node.target[dim]
    value = replace(axis_index(axis) - index.without((axis,)), window=True)
    moved = reindexed(node, {axis: value})
    guard = Within(value, node.sizes[axis])
    named = Axis(f"{node.axes[axis].name}p", None, node.axes[axis].span)
    extents = tuple(size if n == axis else each for n, each in enumerate(node.sizes))
    moved = replace(
        moved,
        axes=tuple(named if n == axis else each for n, each in enumerate(node.axes)),
        sizes=extents,
        target=tuple(axis_index(axis) if n == dim else each for n, each in enumerate(moved.target)),
        guards=tuple(held for held in moved.guards if not _holds(held, extents)),
    )
    reading = [n for n, read in enumerate(node.reads) if _depends(read, axis)]
    alone = reading == [factor] and not any(axis in held.index.axes() for held in moved.guards)
    if not alone or any(
        isinstance(part, scalars.Position) for part in scalars.scalars_within(node.scalar)
    ):
        return replace(moved, guards=(guard, *moved.guards))
    reads = list(moved.reads)
    (number,) = reading
    reads[number] = replace(reads[number], guards=(guard, *reads[number].guards))
    return replace(moved, reads=tuple(reads))


def _holds(held: Within, sizes: Sequence[int]) -> bool:
    """Whether a guard holds everywhere: an axis stays in its own range."""
    index = held.index
    axis = replace(index, window=False).axis()
    return axis is not None and held.size in (None, sizes[axis])


def _depends(read: Read, axis: int) -> bool:
    parts = (*read.index, *(held.index for held in read.guards))
    return any(axis in part.axes() for part in parts)
