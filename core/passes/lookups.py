"""Axes that are looked up as indices: an assignment over the axes that loops count.

Example:
    in:   n2 = n1[v,d] for b d, v = n0[b]
    out:  n2[b,d] = n1[n0[b],d] for b d

An extent as a scalar, of an axis, becomes that of its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Looked, Within, resized
from ilang.core.ir.graph import Assignment, Axis
from ilang.core.ir.scalar import Position, Scalar
from ilang.core.record import mapped, record, replace


@record
class CountedAxes:
    """The axes that loops count, with their sizes; the new number of each, and what the others are looked up from.

    ``extents`` has the size of every axis. Where loops count all of them, none has a new number.
    """

    axes: tuple[Axis, ...]
    sizes: tuple[int, ...]
    names: Mapping[int, int]
    looked: Mapping[int, Looked]
    extents: tuple[int, ...]

    def _is_whole(self) -> bool:
        """Whether every axis has a loop: then an index stays the object that it is."""
        return len(self.axes) == len(self.extents)

    def index(self, part: Affine) -> Affine:
        """An index over all axes as one over those that are counted."""
        if self._is_whole():
            return part
        terms = tuple((c, self.names[axis]) for c, axis in part.steps() if axis in self.names)
        looked = tuple((c, self.looked[axis]) for c, axis in part.steps() if axis in self.looked)
        return replace(part, terms=terms, looked=looked)

    def indices(self, parts: Iterable[Affine]) -> tuple[Affine, ...]:
        """Indices over those axes."""
        return tuple(parts) if self._is_whole() else tuple(map(self.index, parts))

    def guards(self, guards: Iterable[Within]) -> tuple[Within, ...]:
        """Conditions over those axes."""
        return tuple([replace(guard, index=self.index(guard.index)) for guard in guards])

    def scalar(self, scalar: Scalar) -> Scalar:
        """A scalar whose positions are along those axes, and whose extents are sizes."""

        def count(leaf: Position) -> Position:
            return replace(leaf, index=resized(self.index(leaf.index), self.extents))

        return mapped(scalar, Position, count)


def counted(node: Assignment, sizes: Sequence[int], sources: Sequence[int]) -> CountedAxes:
    """The axes of an assignment that are counted.

    Args:
        node: the assignment.
        sizes: the size number of each of its axes.
        sources: the value that each of its lookups is of, in their order.
    """
    others = node.looked_up() | node.measured()
    if not others:
        return CountedAxes(node.axes, tuple(sizes), {}, {}, tuple(sizes))
    kept = [axis for axis in range(len(node.axes)) if axis not in others]
    looked: dict[int, Looked] = {}
    counted_lookups = CountedAxes(
        tuple(node.axes[axis] for axis in kept),
        tuple(sizes[axis] for axis in kept),
        {axis: n for n, axis in enumerate(kept)},
        looked,
        tuple(sizes),
    )
    for lookup, source in zip(node.lookups, sources, strict=True):
        index = node.reads[lookup.read].index
        looked[lookup.axis] = Looked(source, counted_lookups.indices(index), sizes[lookup.axis])
    return counted_lookups
