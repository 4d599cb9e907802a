"""Scatters into windows become gathers: each element of the target looks for what it gets.

Example, of the gradient of ``+(i+k)~i``, a sum over a window:
    in:   d[i + k] += g[i]                     for i k
    out:  d[p] = sum g[p + k - (K - 1)] over k     where that is in the extent of i; K is the extent of k

A gather writes each element once, in any order, so it runs in parallel, in tiles, and in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.calculus.affine import Within, axis_index, size_value
from ilang.core.ir.assignments import reindexed
from ilang.core.ir.graph import Axis
from ilang.core.ir.scalar import Position, scalars_within
from ilang.core.ir.shaped import Assignment, Read
from ilang.core.record import replace

MOST = 2
"""Axes in an index of the target, at most, of which one is solved for."""


def gathered(node: Assignment, dims: Sequence[int], factor: int | None = None) -> Assignment:
    """The same sum over axes of the target where its indices can be solved for axes, each for one of its own.

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
    if not alone or any(isinstance(part, Position) for part in scalars_within(node.scalar)):
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
