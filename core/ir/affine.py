"""Affine indices, and conditions on them, over numbered axes (in graphs) or loop variables (in kernels)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ilang.core.record import record


@record
class Affine:
    """An index of one dimension: the sum of ``coefficient * axis`` over ``terms``, plus ``offset``.

    A ``window`` is written as a group, so its axes have extents of their own even where it is one axis alone. ``sizes``
    are further parts of the offset, each a coefficient and a size number: where a part of a concatenation begins is
    known when the program runs.
    """

    terms: tuple[tuple[int, int], ...]
    offset: int = 0
    window: bool = False
    sizes: tuple[tuple[int, int], ...] = ()

    def axis(self) -> int | None:
        """The axis that this index is exactly (coefficient 1, offset 0, no window), or None."""
        if self.window or self.sizes:
            return None
        if len(self.terms) == 1 and self.terms[0][0] == 1 and self.offset == 0:
            return self.terms[0][1]
        return None

    def renamed(self, names: Mapping[int, int]) -> Affine:
        """The same index over other axes: ``names`` has the new number of each."""
        terms = tuple((coefficient, names[axis]) for coefficient, axis in self.terms)
        return Affine(terms, self.offset, self.window, self.sizes)

    def plus(self, terms: Iterable[tuple[int, int]], offset: int = 0) -> Affine:
        """The index further on by more terms, and by a number."""
        added = (*self.terms, *terms)
        return Affine(added, self.offset + offset, self.window, self.sizes)

    def is_whole(self) -> bool:
        """Whether the index is one axis, so that it walks the whole dimension and never leaves it."""
        return self.axis() is not None


def walks(axis: int) -> Affine:
    """The index that is one axis."""
    return Affine(((1, axis),))


@record
class Within:
    """Holds where an index is inside a dimension: at least 0 and below the extent of size number ``size``.

    Without a ``size`` it holds wherever the index is at least 0.
    """

    index: Affine
    size: int | None


def inside(index: Iterable[Affine], dims: Iterable[int]) -> tuple[Within, ...]:
    """That the indices of an element are inside its dimensions; of whole axes, and of position 0, that is known."""
    return tuple(
        Within(part, size)
        for part, size in zip(index, dims, strict=True)
        if part != Affine(()) and not part.is_whole()
    )
