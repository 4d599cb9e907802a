"""Affine expressions of whole numbers, and conditions on them: over axes (in graphs) or loop variables (in kernels).

The algebra of indices, loop bounds and guards. Only this module reads the terms of an expression; everything else adds,
subtracts, multiplies, substitutes and asks (``coefficient``, ``variables``, ``minimum``).

Terms keep the order in which they were written, for that is the order in which they are printed. An operation adds up
the coefficients of a variable that stands in several terms, and leaves it where it stood first.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
)
from typing import Any, TypeVar

from ilang.core.record import once, record, replace

T = TypeVar("T")


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

    # -- algebra -------------------------------------------------------------------------------------------------------

    def __add__(self, other: Affine | int) -> Affine:
        """The sum; the place of a variable is that in the first operand that has it."""
        if isinstance(other, int):
            return replace(self, offset=self.offset + other) if other else self
        return Affine(
            _added(self.terms, other.terms),
            self.offset + other.offset,
            self.window,
            _added(self.sizes, other.sizes),
            _added(self.looked, other.looked),
        )

    def __sub__(self, other: Affine | int) -> Affine:
        return self + -other

    def __neg__(self) -> Affine:
        return self * -1

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        if factor == 0:
            return Affine((), window=self.window)
        return Affine(
            tuple((factor * c, axis) for c, axis in self.terms),
            factor * self.offset,
            self.window,
            tuple((factor * c, size) for c, size in self.sizes),
            tuple((factor * c, each) for c, each in self.looked),
        )

    __rmul__ = __mul__

    def substituted(self, place: Mapping[Any, Affine]) -> Affine:
        """The expression in which expressions stand for some variables, also where elements are looked up."""
        moved = looking(self, lambda part: part.substituted(place))
        if place.keys().isdisjoint(self.variables()):
            return moved
        whole = self.axis()
        if whole is not None:
            return place[whole]
        total = Affine((), self.offset, self.window, self.sizes, moved.looked)
        for c, variable in self.terms:
            instead = place.get(variable) or axis_index(variable)
            total = replace(total + c * instead, window=total.window or instead.window)
        return total

    def merged(self) -> Affine:
        """The same expression, each variable and size in one term, and those of coefficient 0 in none."""
        terms, sizes = _merged(self.terms), _merged(self.sizes)
        same = terms is self.terms and sizes is self.sizes
        return self if same else replace(self, terms=terms, sizes=sizes)

    def renamed(self, names: Mapping[int, int]) -> Affine:
        """The same index over other axes: ``names`` has the new number of each."""
        terms = tuple((coefficient, names[axis]) for coefficient, axis in self.terms)
        return replace(looking(self, lambda part: part.renamed(names)), terms=terms)

    def without(self, variables: Collection[int]) -> Affine:
        """The expression where some variables are 0; what is looked up stays."""
        return replace(self, terms=tuple(term for term in self.terms if term[1] not in variables))

    # -- questions -----------------------------------------------------------------------------------------------------

    @once
    def axis(self) -> int | None:
        """The axis that this index is exactly (coefficient 1, offset 0, no window), or None."""
        if len(self.terms) != 1 or self.offset or self.window or self.sizes or self.looked:
            return None
        ((coefficient, axis),) = self.terms
        return axis if coefficient == 1 else None

    def coefficient(self, variable: int) -> int:
        """The step that one more of a variable adds."""
        return sum(c for c, axis in self.terms if axis == variable)

    def steps(self) -> tuple[tuple[int, int], ...]:
        """Each coefficient with its variable, in the order in which they are printed."""
        return self.terms

    def variables(self) -> KeysView[int]:
        """The variables that it is affine in, in printing order; ``axes`` has those of look-ups, too."""
        return {axis: c for c, axis in self.terms}.keys()

    def value(self, values: Mapping[Any, int]) -> int:
        """The value where variables have values, any other 0, apart from sizes and from what is looked up."""
        return self.offset + sum(c * values.get(axis, 0) for c, axis in self.terms)

    def rests_on(self) -> set[int]:
        """The axes, or variables, of which the index is no affine function: what is looked up is found by them."""
        if not self.looked:
            return set()
        return {axis for each in lookups((self,)) for part in each.index for _, axis in part.terms}

    def axes(self) -> set[int]:
        """Every axis, or variable, that the index depends on."""
        axes = {axis for _, axis in self.terms}
        return axes | self.rests_on() if self.looked else axes

    def constant(self) -> int | None:
        """The number that it is, whatever runs; None where it depends on anything."""
        return None if self.terms or self.sizes or self.looked else self.offset

    def is_natural(self) -> bool:
        """Whether it is known to be 0 or more, since nothing in it is negative."""
        parts = (*self.terms, *self.sizes, *self.looked)
        return 0 <= self.offset and all(0 <= c for c, _ in parts)

    def is_multiple(self, number: int) -> bool:
        """Whether offset and coefficients of variables are multiples of a number."""
        return self.offset % number == 0 and all(c % number == 0 for c, _ in self.terms)

    # -- bounds --------------------------------------------------------------------------------------------------------

    def minimum(self, extents: Mapping[Any, int | None]) -> Affine | None:
        """The least value over variables that go from 0 to below known extents, an expression over all others.

        None where a variable that it falls with has no known extent (None). A variable with the extent 0 counts as 0.
        """
        offset, terms = self.offset, []
        for c, variable in self.terms:
            if variable not in extents:
                terms.append((c, variable))
            elif c < 0:
                extent = extents[variable]
                if extent is None:
                    return None
                offset += c * max(0, extent - 1)
        return replace(self, terms=tuple(terms), offset=offset)

    def maximum(self, extents: Mapping[Any, int | None]) -> Affine | None:
        """The greatest value over variables that go from 0 to below known extents; see ``minimum``."""
        least = (-self).minimum(extents)
        return None if least is None else -least


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


def size_value(size: int) -> Affine:
    """The extent of a size number as an expression."""
    return Affine((), sizes=((1, size),))


def looking(index: Affine, change: Callable[[Affine], Affine]) -> Affine:
    """The same index, its parts looked up at changed indices."""
    if not index.looked:
        return index
    looked = tuple(
        (c, replace(each, index=tuple(map(change, each.index)))) for c, each in index.looked
    )
    return replace(index, looked=looked)


def resized(index: Affine, numbers: Mapping[int, int] | Sequence[int]) -> Affine:
    """The same index over other sizes: ``numbers`` has the new number of each."""
    sizes = tuple((c, numbers[size]) for c, size in index.sizes)
    return replace(index, sizes=sizes) if sizes else index


def with_extents(index: Affine, extent: Callable[[int], int | None]) -> Affine:
    """An index with the extents that are known in the place of their sizes."""
    extents = [(c, size, extent(size)) for c, size in index.sizes]
    known = sum(c * fixed for c, _, fixed in extents if fixed is not None)
    sizes = tuple((c, size) for c, size, fixed in extents if fixed is None)
    return replace(index, offset=index.offset + known, sizes=sizes)


def divided(index: Affine, divisor: int) -> Affine:
    """The quotient of an affine function of variables alone whose numbers are all multiples of a number."""
    assert index.is_multiple(divisor)
    assert not index.sizes
    assert not index.looked
    return Affine(tuple((c // divisor, axis) for c, axis in index.terms), index.offset // divisor)


def positive(index: Affine) -> Affine:
    """The terms and sizes with coefficients above 0, without the offset."""
    return Affine(
        tuple(each for each in index.terms if 0 < each[0]),
        sizes=tuple(each for each in index.sizes if 0 < each[0]),
    )


def outermost_first(index: Affine) -> Affine:
    """The same expression, its terms from the last one to the first."""
    return replace(index, terms=index.terms[::-1])


def canonical(index: Affine) -> Hashable:
    """One value for all expressions that are equal whatever the variables are: the order of terms is left out."""
    once = index.merged()
    return frozenset(once.terms), once.offset, frozenset(once.sizes), frozenset(once.looked)


def left(index: Affine) -> tuple[Affine, int] | None:
    """Of what is left of a dimension from an index on, ``n - i``: that index, and the size; None of anything else.

    Loops over a last block run so often: ``n_j - 64j`` gives ``64j`` and ``n_j``.
    """
    sizes = [size for c, size in index.sizes if 0 < c]
    if len(sizes) != 1 or (1, *sizes) not in index.sizes:
        return None
    (size,) = sizes
    start = size_value(size) - index
    return (start, size) if start.is_natural() else None


def lookups(index: Iterable[Affine]) -> Iterator[Looked]:
    """Every element that the parts of an index rest on, those first that others rest on."""
    for part in index:
        for _, each in part.looked:
            yield from lookups(each.index)
            yield each


def is_inside(index: Affine) -> bool:
    """Whether an index is known to stay in the dimension that it is of: position 0, an axis, one looked up."""
    if index.axis() is not None:
        return True
    return replace(index, looked=()) == Affine(()) and [c for c, _ in index.looked] in ([], [1])


def variables_of(index: Iterable[Affine]) -> set[int]:
    """The variables that the parts of an index are affine in."""
    return {axis for part in index for _, axis in part.terms}


def row_step(index: Sequence[Affine], variable: int) -> int | None:
    """The elements that one more of a variable moves an access along its row, the last dimension.

    None where it moves the access in another dimension, or elements are looked up by it. An access without dimensions
    stays where it is.
    """
    *others, last = index or (Affine(()),)
    if any(variable in part.axes() for part in others) or variable in last.rests_on():
        return None
    return last.coefficient(variable)


def _added(
    first: tuple[tuple[int, T], ...], second: tuple[tuple[int, T], ...]
) -> tuple[tuple[int, T], ...]:
    """Terms of two sums as those of one."""
    return _merged((*first, *second)) if first and second else first or second


def _merged(terms: tuple[tuple[int, T], ...]) -> tuple[tuple[int, T], ...]:
    """Terms in which each thing stands once, where it stood first, and nothing with coefficient 0."""
    if len(terms) == 1 and terms[0][0]:
        return terms
    total: dict[T, int] = {}
    for c, each in terms:
        total[each] = total.get(each, 0) + c
    return tuple((c, each) for each, c in total.items() if c)


def sides(index: Affine) -> tuple[Affine, Affine]:
    """The lesser and the greater side of a condition that an index is at least 0, neither with a minus sign."""
    less, more = positive(-index), positive(index)
    return less + max(-index.offset, 0), more + max(index.offset, 0)


def at_least_0(index: Affine) -> tuple[Affine, str, Affine]:
    """A comparison that an index is at least 0: what it subtracts on the left, what that may be on the right.

    Example: `0 <= -8k - k1 + 254` as `8k + k1 <= 254`, `0 <= -k + n - 2` as `k + 1 < n`, `0 <= i - 3` as `i >= 3`.
    """
    if index.looked:
        return index, ">=", Affine(())
    less, more = sides(index)
    if less.constant() is not None:
        return positive(index), ">=", Affine((), -index.offset)
    return (less - 1, "<", more) if index.offset < 0 else (less, "<=", more)


@record
class Within:
    """Holds where an index is inside a dimension: at least 0 and below the extent of size number ``size``.

    Without a ``size`` it holds wherever the index is at least 0.
    """

    index: Affine
    size: int | None

    def at(self, variable: int, iteration: Affine | int) -> Within:
        """The condition on one iteration of a loop over a variable."""
        place = iteration if isinstance(iteration, Affine) else Affine((), iteration)
        return replace(self, index=self.index.substituted({variable: place}))

    def is_plain(self) -> bool:
        """Whether it compares loops and sizes, and nothing that is looked up, with no dimension."""
        return self.size is None and not self.index.looked

    def holds(self, extents: Mapping[Any, int | None], size: int | None) -> bool | None:
        """Whether it holds in every iteration of loops of these extents, or in none; None for anything else.

        ``size`` is the extent of its dimension: None where it has none, or one that is not known.
        """
        if self.index.looked or (self.size is not None and size is None):
            return None
        ends = self.index.minimum(extents), self.index.maximum(extents)
        least, most = (None if end is None else end.constant() for end in ends)
        if least is None or most is None:
            return None
        if 0 <= least and (size is None or most < size):
            return True
        return False if most < 0 or (size is not None and size <= least) else None

    def limit(self, variable: int) -> tuple[Affine, int]:
        """The iteration of a loop at which the condition begins, or ceases, to hold: ``ceil(index / step)`` as a pair.

        One on a dimension holds from the first iteration on.
        """
        step, left = self.index.coefficient(variable), self.index.without((variable,))
        if self.size is not None:
            return size_value(self.size) - left, step
        return (left + 1, -step) if step < 0 else (-left, step)


def before(variable: int, end: Affine, step: int = 1) -> Within:
    """The condition that an iteration is before ``ceil(end / step)``: of one dimension where its size says so."""
    part = left(end)
    if part is None:
        return Within(end - 1 - step * axis_index(variable), None)
    start, size = part
    return Within(start + step * axis_index(variable), size)


def limits(
    within: Iterable[Within], variable: int
) -> tuple[list[tuple[Affine, int]], list[tuple[Affine, int]], tuple[Within, ...]]:
    """The limits at which conditions on iterations of a loop begin to hold, and cease to, and all other conditions."""
    begin: list[tuple[Affine, int]] = []
    end: list[tuple[Affine, int]] = []
    others: list[Within] = []
    for each in dict.fromkeys(within):
        step = each.index.coefficient(variable)
        if not step:
            others.append(each)
        else:
            (end if step < 0 or each.size is not None else begin).append(each.limit(variable))
    return begin, end, tuple(others)


def inside(index: Iterable[Affine], dims: Iterable[int]) -> tuple[Within, ...]:
    """The conditions that the indices of an element are inside its dimensions, where that is not known."""
    return tuple(
        Within(part, size) for part, size in zip(index, dims, strict=True) if not is_inside(part)
    )
