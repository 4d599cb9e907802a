"""Invariants of ``infer/solved.py``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ilang.core.calculus.affine import Affine
from ilang.core.diagnostic import InternalError
from ilang.core.infer.solved import Solved
from ilang.core.ir.graph import Assignment, Elementwise, Groups, View
from ilang.core.ir.operation import Operation


def verify(solved: Solved) -> None:
    """Raise an InternalError (E9907) naming the first invariant that does not hold."""
    for value, node in enumerate(solved.graph.nodes):
        if value not in solved.needed:
            continue
        match node:
            case Assignment():
                _assignment(solved, value, node)
            case Elementwise():
                _demand(solved.dims(value) == solved.dims(node.value), "dimensions stay", value)
            case View():
                for groups, dims in ((node.source, node.value), (node.target, value)):
                    _groups(solved, value, groups, solved.dims(dims))
            case Operation():
                _projections(solved, value, node)
            case _:
                pass
    _derived(solved)


def _assignment(solved: Solved, value: int, node: Assignment) -> None:
    axes = solved.axes(value)
    for read in node.reads:
        _indexed(solved, value, read.value, read.index, axes)
    _indexed(solved, value, value, node.target, axes)


def _groups(solved: Solved, value: int, groups: Groups, dims: Sequence[int]) -> None:
    """A dimension is one axis of a view, or the product of several."""
    axes = solved.axes(value)
    _demand(len(groups) == len(dims), "a view has a group a dimension", value)
    for group, size in zip(groups, dims, strict=True):
        parts = [axes[axis] for axis in group]
        if len(parts) == 1:
            _demand(parts[0] == size, "a dimension of one axis has its size", value)
        known = [solved.fixed(part) for part in parts]
        fixed = None if None in known else prod(n or 0 for n in known)
        whole = solved.fixed(size)
        same = fixed is None or whole is None or fixed == whole
        _demand(same, "a dimension has as many elements as its axes", value)


def _projections(solved: Solved, value: int, node: Operation) -> None:
    for projection in solved.projections[value]:
        axes = [loop.size for loop in projection.loops]
        _indexed(solved, value, value, projection.target, axes)
        for operand, index in projection.reads:
            _indexed(solved, value, node.operands[operand], index, axes)


def _indexed(
    solved: Solved, value: int, tensor: int, index: Sequence[Affine], axes: Sequence[int | None]
) -> None:
    """An index has a part a dimension; an axis that walks a whole dimension has its size."""
    dims = solved.dims(tensor)
    _demand(len(index) == len(dims), "an index has a part a dimension", value)
    for part, size in zip(index, dims, strict=True):
        axis = part.axis()
        fits = axis is None or axes[axis] == size
        _demand(fits, "an axis has the size of the dimension that it walks", value)


def _derived(solved: Solved) -> None:
    """Every extent is a number, given, or computed from such as are known before."""
    count = len(solved.numbers.entries)
    known = {size for size in range(count) if solved.fixed(size) is not None}
    known.update(size for value in solved.inputs for size in solved.dims(value))
    for each in solved.derived:
        ready = known.issuperset(each.sources())
        _demand(ready, "extents follow from those before them", 0)
        known.add(each.size)
    for value in solved.needed:
        _demand(known.issuperset(solved.dims(value)), "every extent is known", value)


def _demand(holds: bool, invariant: str, value: int) -> None:
    if not holds:
        raise InternalError("E9907", f"solved graph, node {value}: {invariant}")
