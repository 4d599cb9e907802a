"""Scatters into windows become gathers: each element of the target looks for what it gets.

Example, of the gradient of ``+(i+k)~i``, a sum over a window:
    in:   d[i + k] += g[i]                 for i k
    out:  d[p] = sum g[p - k] over k       where 0 <= p - k < extent of i

A gather writes each element once, in any order, so it runs in parallel, in tiles, and in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.ir.affine import Affine, Within, axis_index
from ilang.core.ir.graph import Axis
from ilang.core.ir.shaped import Assignment
from ilang.core.record import replace
from ilang.core.transform.indices import walking

MOST = 2
"""Axes in an index of the target, at most, of which one is solved for."""


def gathered(node: Assignment, dims: Sequence[int]) -> Assignment:
    """The same sum over axes of the target where its indices can be solved for axes, each for one of its own.

    Args:
        node: an accumulation whose target has affine indices.
        dims: the sizes of the dimensions of the target.
    """
    for dim, index in enumerate(node.target):
        if index.is_whole() or not index.terms or index.looked:
            continue
        axis = _solvable(node, dim)
        if axis is not None:
            node = _solved(node, dim, axis, dims[dim])
    return node


def _solvable(node: Assignment, dim: int) -> int | None:
    """The axis that an index of the target is solved for: one of coefficient 1 that only this index has.

    Strides stay scatters: for most elements of the target they have no solution.
    """
    index = node.target[dim]
    if len(index.terms) > MOST or any(abs(c) != 1 for c, _ in index.terms):
        return None
    others = {axis for n, part in enumerate(node.target) if n != dim for axis in part.axes()}
    looked = {axis for each in node.indices() for axis in each.rests_on()}
    free = [axis for c, axis in index.terms if c == 1 and axis not in others | looked]
    return free[0] if free else None


def _solved(node: Assignment, dim: int, axis: int, size: int) -> Assignment:
    """The assignment with an axis over the dimension in place of ``axis``, and a guard that keeps that in its range.

    The new axis p has the old one's number: the old one is p - rest.
    """
    index = node.target[dim]
    rest = tuple((-c, each) for c, each in index.terms if each != axis)
    sizes = tuple((-c, each) for c, each in index.sizes)
    value = Affine(((1, axis), *rest), -index.offset, True, sizes)
    moved = walking(node, {axis: value})
    target = tuple(axis_index(axis) if n == dim else part for n, part in enumerate(moved.target))
    named = Axis(f"{node.axes[axis].name}p", None, node.axes[axis].span)
    return replace(
        moved,
        axes=tuple(named if n == axis else each for n, each in enumerate(node.axes)),
        sizes=tuple(size if n == axis else each for n, each in enumerate(node.sizes)),
        target=target,
        guards=(Within(value, node.sizes[axis]), *moved.guards),
    )
