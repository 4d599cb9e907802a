"""The order in which a product of many tensors is contracted, two at a time.

Example, of 20 × 30, 30 × 40 and 40 × 5, whose outer axes stay:
    in:   terms ij, jk, kl; kept il
    out:  steps (jk, kl), then (ij, both)

One of least multiplications: exactly for few operands, by subsets (Pfeifer, Haegeman and Verstraete, 2014); greedily,
by the size that a contraction saves, for more (Smith and Gray, opt_einsum, 2018).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Generic, TypeVar

Path = tuple[tuple[int, ...], ...]
"""Contractions, each the positions of what it takes among the tensors that are left; its result is then the last of
them (as ``numpy.einsum_path`` and opt_einsum have it)."""
Steps = tuple[tuple[int, int], ...]
"""Contractions, each of two sets of operands: bits of numbers."""
FEW = 8
"""Operands at most whose best order is searched for among all: 3^8 pairs of subsets."""

A = TypeVar("A", bound=Hashable)
T = TypeVar("T")


def contraction_steps(
    terms: Sequence[frozenset[A]],
    kept: frozenset[A],
    size: Callable[[frozenset[A]], int],
    known: Collection[int] = (),
) -> Steps:
    """The contractions of a product of two tensors or more, the last of them of all.

    Args:
        terms: the axes of each tensor.
        kept: those of the result.
        size: the elements of a tensor with some axes.
        known: sets of tensors whose product is there already; only few tensors have any.
    """
    if len(terms) <= FEW:
        return _best(terms, kept, size, known)
    path = _Greedy(terms, kept, size).path()
    return _steps_of(path, len(terms))


def kept_axes(terms: Sequence[frozenset[A]], kept: frozenset[A], subset: int) -> frozenset[A]:
    """The axes of the product of a set of tensors which other tensors or the result have."""
    rest = ((1 << len(terms)) - 1) ^ subset
    return _united(terms, subset) & (kept | _united(terms, rest))


def path_of(steps: Steps, count: int) -> Path:
    """The path that some steps are, over so many tensors."""
    tensors = [1 << n for n in range(count)]
    path: list[tuple[int, ...]] = []
    for one, other in steps:
        taken = tuple(sorted((tensors.index(one), tensors.index(other))))
        removed(tensors, taken)
        tensors.append(one | other)
        path.append(taken)
    return tuple(path)


def removed(items: list[T], places: Iterable[int]) -> list[T]:
    """A list without what stands at some places, which is taken out of it."""
    for place in sorted(set(places), reverse=True):
        del items[place]
    return items


def _steps_of(path: Path, count: int) -> Steps:
    tensors = [1 << n for n in range(count)]
    steps: list[tuple[int, int]] = []
    for one, other in path:
        steps.append((tensors[one], tensors[other]))
        removed(tensors, (one, other)).append(sum(steps[-1]))
    return tuple(steps)


def _best(
    terms: Sequence[frozenset[A]],
    kept: frozenset[A],
    size: Callable[[frozenset[A]], int],
    known: Collection[int],
) -> Steps:
    """The order of fewest multiplications, by dynamic programming over subsets of the operands.

    A subset is the bits of a number; ``whole`` has them all. Of orders that cost the same, the first found stays.
    """
    count = len(terms)
    whole = (1 << count) - 1
    left = [kept_axes(terms, kept, subset) for subset in range(whole + 1)]
    cost = dict.fromkeys((*(1 << n for n in range(count)), *known), 0)
    split: dict[int, int] = {}
    for subset in sorted(range(1, whole + 1), key=int.bit_count):
        if subset in cost:
            continue
        part = (subset - 1) & subset
        while part:
            other = subset ^ part
            if other < part:
                candidate = cost[part] + cost[other] + size(_ends(left, terms, part, other))
                if subset not in cost or candidate < cost[subset]:
                    cost[subset], split[subset] = candidate, part
            part = (part - 1) & subset
    return _split_steps(split, whole)


def _split_steps(split: dict[int, int], whole: int) -> Steps:
    """The steps of a tree of subsets: inner products first, left before right."""
    steps: list[tuple[int, int]] = []
    stack = [whole]
    while stack:
        subset = stack.pop()
        if subset in split:
            steps.append((split[subset], subset ^ split[subset]))
            stack += steps[-1]
    return tuple(reversed(steps))


class _Greedy(Generic[A]):
    """A greedy search: the tensors that are left, by their axes, and a heap of pairs of sets of axes.

    Tensors of the same axes are alike, so the heap has each pair of sets once. What a pair costs changes only where a
    product comes to have one of its sets, and is then pushed anew; an entry whose tensors are gone is corrected when
    it comes out.
    """

    def __init__(
        self, terms: Sequence[frozenset[A]], kept: frozenset[A], size: Callable[[frozenset[A]], int]
    ) -> None:
        self.kept = kept
        self.size = size
        self.left = list(range(len(terms)))
        self.next = len(terms)
        self.heap: list[tuple[int, int, int, int, frozenset[A], frozenset[A]]] = []
        self.numbers: dict[frozenset[A], deque[int]] = {}
        """The tensors of each set of axes, in order."""
        self.holders: dict[A, int] = {}
        """The number of tensors that have each axis."""
        self.sharing: dict[A, dict[frozenset[A], None]] = {}
        """The sets that have each axis."""
        self.is_apart = False
        """Whether no two tensors share an axis: then any two are a pair."""
        for number, axes in enumerate(terms):
            self._add(number, axes)

    def path(self) -> Path:
        """The contractions, the last of them of two tensors."""
        for axes in self.numbers:
            self._push(axes)
        path: list[tuple[int, ...]] = []
        while 2 < len(self.left):
            one, other = self._cheapest()
            product = self._product(one, other)
            taken = sorted((self._take(one), self._take(other)))
            places = [bisect_left(self.left, number) for number in taken]
            path.append(tuple(places))
            removed(self.left, places)
            self.left.append(self.next)
            self._add(self.next, product)
            self._push(product)
            self.next += 1
        return (*path, tuple(range(len(self.left))))

    def _add(self, number: int, axes: frozenset[A]) -> None:
        self.numbers.setdefault(axes, deque()).append(number)
        for axis in axes:
            self.holders[axis] = self.holders.get(axis, 0) + 1
            self.sharing.setdefault(axis, {})[axes] = None

    def _take(self, axes: frozenset[A]) -> int:
        numbers = self.numbers[axes]
        number = numbers.popleft()
        for axis in axes:
            self.holders[axis] -= 1
            if not numbers:
                del self.sharing[axis][axes]
        if not numbers:
            del self.numbers[axes]
        return number

    def _cheapest(self) -> tuple[frozenset[A], frozenset[A]]:
        """The pair whose product grows least over its operands, then costs least, then comes first."""
        while True:
            if not self.heap:
                self.is_apart = True
                for axes in self.numbers:
                    self._push(axes)
            entry = heappop(self.heap)
            current = self._entry(*entry[4:])
            if current is not None and current[:4] == entry[:4]:
                return entry[4:]
            if current is not None:
                heappush(self.heap, current)

    def _push(self, axes: frozenset[A]) -> None:
        """The pairs that some axes are in."""
        near = self.numbers if self.is_apart else {s: None for a in axes for s in self.sharing[a]}
        for each in near:
            entry = self._entry(axes, each)
            if entry is not None:
                heappush(self.heap, entry)

    def _entry(
        self, one: frozenset[A], other: frozenset[A]
    ) -> tuple[int, int, int, int, frozenset[A], frozenset[A]] | None:
        """The cost of a pair, and its first two tensors; None if it has no two any more."""
        first, second = self.numbers.get(one, ()), self.numbers.get(other, ())
        place = 1 if one == other else 0
        if not first or len(second) <= place:
            return None
        grown = self.size(self._product(one, other)) - self.size(one) - self.size(other)
        low, high = sorted((first[0], second[place]))
        return grown, self.size(one | other), low, high, one, other

    def _product(self, one: frozenset[A], other: frozenset[A]) -> frozenset[A]:
        """The axes of a product of two that later products or the result still have."""
        return frozenset(
            axis
            for axis in one | other
            if axis in self.kept or (axis in one) + (axis in other) < self.holders[axis]
        )


def _ends(
    left: Sequence[frozenset[A]], terms: Sequence[frozenset[A]], part: int, other: int
) -> frozenset[A]:
    """The axes of the loops that multiply two subsets: operands have all of theirs, products those that are left."""
    sides = (terms[s.bit_length() - 1] if s.bit_count() == 1 else left[s] for s in (part, other))
    return frozenset[A]().union(*sides)


def _united(terms: Sequence[frozenset[A]], subset: int) -> frozenset[A]:
    return frozenset[A]().union(*(term for n, term in enumerate(terms) if subset >> n & 1))
