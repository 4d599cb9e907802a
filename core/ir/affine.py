"""Affine indices, and conditions on them, over numbered axes (in graphs) or loop variables (in kernels)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ilang.core.record import once, record, replace


@record
class Affine:
    """An index of one dimension: the sum of ``coefficient * axis`` over ``terms``, plus ``offset``.

    A ``window`` is written as a group, so its axes have extents of their own even where it is one axis alone. ``sizes``
    are further parts of the offset, each a coefficient and a size number: where a part of a concatenation begins is
    known when the program runs. So are parts that are ``looked`` up: each a coefficient and an element.
    """

    __slots__ = ("__dict__", "_axis", "_hash")

    terms: tuple[tuple[int, int], ...]
    offset: int = 0
    window: bool = False
    sizes: tuple[tuple[int, int], ...] = ()
    looked: tuple[tuple[int, Looked], ...] = ()

    @once
    def axis(self) -> int | None:
        """The axis that this index is exactly (coefficient 1, offset 0, no window), or None."""
        if len(self.terms) != 1 or self.offset or self.window or self.sizes or self.looked:
            return None
        ((coefficient, axis),) = self.terms
        return axis if coefficient == 1 else None

    def renamed(self, names: Mapping[int, int]) -> Affine:
        """The same index over other axes: ``names`` has the new number of each."""
        terms = tuple((coefficient, names[axis]) for coefficient, axis in self.terms)
        return replace(self.looking(lambda part: part.renamed(names)), terms=terms)

    def plus(self, terms: Iterable[tuple[int, int]], offset: int = 0) -> Affine:
        """The index further on by more terms, and by a number."""
        added = (*self.terms, *terms)
        return Affine(added, self.offset + offset, self.window, self.sizes, self.looked)

    def looking(self, change: Callable[[Affine], Affine]) -> Affine:
        """The same index, its parts looked up at changed indices."""
        if not self.looked:
            return self
        looked = tuple(
            (c, replace(each, index=tuple(map(change, each.index)))) for c, each in self.looked
        )
        return replace(self, looked=looked)

    def lookups(self) -> Iterator[Looked]:
        """Every element that the index rests on, those first that others rest on."""
        for _, each in self.looked:
            for part in each.index:
                yield from part.lookups()
            yield each

    def rests_on(self) -> set[int]:
        """The axes, or variables, of which the index is no affine function: what is looked up is found by them."""
        if not self.looked:
            return set()
        return {axis for each in self.lookups() for part in each.index for _, axis in part.terms}

    def axes(self) -> set[int]:
        """Every axis, or variable, that the index depends on."""
        axes = {axis for _, axis in self.terms}
        return axes | self.rests_on() if self.looked else axes

    def is_whole(self) -> bool:
        """Whether the index is one axis, so that it walks the whole dimension and never leaves it."""
        return self.axis() is not None

    def is_inside(self) -> bool:
        """Whether the index is known to stay in the dimension that it is of: position 0, an axis, one looked up."""
        if self == Affine(()) or self.is_whole():
            return True
        return replace(self, looked=()) == Affine(()) and [c for c, _ in self.looked] == [1]


@record
class Looked:
    """An integer element that is an index: of value (in graphs) or buffer (in kernels) ``source``.

    The element is at least 0 and below the extent of size number ``size``: that is checked of every element of the
    source before anything reads it so.
    """

    source: int
    index: tuple[Affine, ...]
    size: int


def axis_index(axis: int) -> Affine:
    """The index that is one axis."""
    return Affine(((1, axis),))


def at_least_0(index: Affine) -> tuple[Affine, str, Affine]:
    """A comparison that an index is at least 0: what it subtracts on the left, what that may be on the right.

    Example: `0 <= -8k - k1 + 254` as `8k + k1 <= 254`, `0 <= -k + n - 2` as `k + 1 < n`, `0 <= i - 3` as `i >= 3`.
    """
    if index.looked:
        return index, ">=", Affine(())
    less = Affine(
        tuple((-c, axis) for c, axis in index.terms if c < 0),
        sizes=tuple((-c, size) for c, size in index.sizes if c < 0),
    )
    more = Affine(
        tuple(each for each in index.terms if each[0] > 0),
        sizes=tuple(each for each in index.sizes if each[0] > 0),
    )
    if less == Affine(()):
        return more, ">=", Affine((), -index.offset)
    if index.offset < 0:
        return less.plus((), -index.offset - 1), "<", more
    return less, "<=", more.plus((), index.offset)


@record
class Within:
    """Holds where an index is inside a dimension: at least 0 and below the extent of size number ``size``.

    Without a ``size`` it holds wherever the index is at least 0.
    """

    index: Affine
    size: int | None


def inside(index: Iterable[Affine], dims: Iterable[int]) -> tuple[Within, ...]:
    """The conditions that the indices of an element are inside its dimensions, where that is not known."""
    return tuple(
        Within(part, size) for part, size in zip(index, dims, strict=True) if not part.is_inside()
    )
