"""The order in which a product of many tensors is contracted: a specification becomes several, of few operands each.

Example:
    in:   einsum `ij,jk,kl->il` of n0 n1 n2, path (0, 1) (0, 1)
    out:  n3 = einsum `ij,jk->ik` of n0 n1
          n4 = einsum `kl,ik->il` of n2 n3

A path is a tuple of contractions, each the positions of what it takes among the tensors that are left; its result is
then the last of them (as ``numpy.einsum_path`` and opt_einsum have it). ``contraction_path`` finds one of least
multiplications: exactly for few operands, by subsets (Pfeifer, Haegeman and Verstraete, 2014); greedily, by the size
that a contraction saves, for more (Smith and Gray, opt_einsum, 2018).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import prod
from typing import TypeVar

from ilang.core.ir.spec import Axis, AxisLabel, Fixed, ShapeSpec, Spec, SpecRow
from ilang.core.ir.syntax import Schedule
from ilang.core.notation.einsum.subscripts import VARIABLE, letters, output_row
from ilang.core.source import Span

T = TypeVar("T")
Path = tuple[tuple[int, ...], ...]
FEW = 8
"""Operands at most whose best order is searched for among all: 3^8 pairs of subsets."""
USUAL = 64
"""The number that an extent is taken for where nothing gives it."""

Axes = frozenset[str]


def contraction_path(spec: Spec, extents: Mapping[str, int]) -> Path:
    """An order of contraction for a specification in which every shape is an output row.

    Args:
        spec: the specification; what an ellipsis stands for counts as one axis.
        extents: of axes by their names, where they are known.
    """
    terms = [_axes(shape) for shape in spec.operands]
    search = _Search(terms, _axes(spec.result), extents)
    if len(terms) <= 2:
        return (tuple(range(len(terms))),)
    return search.best() if len(terms) <= FEW else search.greedy()


def usual_path(spec: Spec, schedule: Schedule | None) -> Path:
    """The path of a specification whose extents nobody knows yet; none where all its operands are one nest.

    A specification of this language is one nest, and so is one with a schedule, which is of that nest.
    """
    if not spec.subscripts or schedule is not None or len(spec.operands) <= 2:
        return ()
    return contraction_path(spec, {})


def _axes(shape: ShapeSpec) -> Axes:
    dots = {VARIABLE} if output_row(shape).variable is not None else set()
    return frozenset(letters(shape)) | dots


class _Search:
    """The tensors of a product as sets of axes, what the result keeps, and how large axes are."""

    def __init__(self, terms: Sequence[Axes], kept: Axes, extents: Mapping[str, int]) -> None:
        self.terms = terms
        self.kept = kept
        self.extents = extents

    def size(self, axes: Axes) -> int:
        """The elements of a tensor with these axes."""
        return prod(max(self.extents.get(axis, USUAL), 1) for axis in axes)

    def best(self) -> Path:
        """The order of fewest multiplications, by dynamic programming over subsets of the operands.

        A subset is the bits of a number; ``whole`` has them all. Of orders that cost the same, the first found stays.
        """
        count = len(self.terms)
        whole = (1 << count) - 1
        inside = [_united(self.terms, subset) for subset in range(whole + 1)]
        left = [inside[s] & (self.kept | inside[whole ^ s]) for s in range(whole + 1)]
        cost = {1 << n: 0 for n in range(count)}
        split: dict[int, int] = {}
        for subset in sorted(range(1, whole + 1), key=int.bit_count):
            if subset in cost:
                continue
            part = (subset - 1) & subset
            while part:
                other = subset ^ part
                if other < part:
                    candidate = (
                        cost[part] + cost[other] + self.size(_ends(left, self.terms, part, other))
                    )
                    if subset not in cost or candidate < cost[subset]:
                        cost[subset], split[subset] = candidate, part
                part = (part - 1) & subset
        return _path_of(split, whole, count)

    def greedy(self) -> Path:
        """An order by taking, again and again, the pair whose product saves most memory, sharing an axis if any do."""
        return _Greedy(self.terms, self.kept, self.size).path()


class _Greedy:
    """A greedy search: the tensors that are left, by their axes, and a heap of pairs of sets of axes.

    Tensors of the same axes are alike, so the heap has each pair of sets once. What a pair costs changes only where a
    product comes to have one of its sets, and is then pushed anew; an entry whose tensors are gone is corrected when
    it comes out.
    """

    def __init__(self, terms: Sequence[Axes], kept: Axes, size: Callable[[Axes], int]) -> None:
        self.kept = kept
        self.size = size
        self.left = list(range(len(terms)))
        self.next = len(terms)
        self.heap: list[tuple[int, int, int, int, Axes, Axes]] = []
        self.numbers: dict[Axes, deque[int]] = {}
        """The tensors of each set of axes, in order."""
        self.holders: dict[str, int] = {}
        """The number of tensors that have each axis."""
        self.sharing: dict[str, dict[Axes, None]] = {}
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
            _remove(self.left, places)
            self.left.append(self.next)
            self._add(self.next, product)
            self._push(product)
            self.next += 1
        return (*path, tuple(range(len(self.left))))

    def _add(self, number: int, axes: Axes) -> None:
        self.numbers.setdefault(axes, deque()).append(number)
        for axis in axes:
            self.holders[axis] = self.holders.get(axis, 0) + 1
            self.sharing.setdefault(axis, {})[axes] = None

    def _take(self, axes: Axes) -> int:
        numbers = self.numbers[axes]
        number = numbers.popleft()
        for axis in axes:
            self.holders[axis] -= 1
            if not numbers:
                del self.sharing[axis][axes]
        if not numbers:
            del self.numbers[axes]
        return number

    def _cheapest(self) -> tuple[Axes, Axes]:
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

    def _push(self, axes: Axes) -> None:
        """The pairs that some axes are in."""
        near = self.numbers if self.is_apart else {s: None for a in axes for s in self.sharing[a]}
        for each in near:
            entry = self._entry(axes, each)
            if entry is not None:
                heappush(self.heap, entry)

    def _entry(self, one: Axes, other: Axes) -> tuple[int, int, int, int, Axes, Axes] | None:
        """The cost of a pair, and its first two tensors; None if it has no two any more."""
        first, second = self.numbers.get(one, ()), self.numbers.get(other, ())
        place = 1 if one == other else 0
        if not first or len(second) <= place:
            return None
        grown = self.size(self._product(one, other)) - self.size(one) - self.size(other)
        low, high = sorted((first[0], second[place]))
        return grown, self.size(one | other), low, high, one, other

    def _product(self, one: Axes, other: Axes) -> Axes:
        """The axes of a product of two that later products or the result still have."""
        return frozenset(
            axis
            for axis in one | other
            if axis in self.kept or (axis in one) + (axis in other) < self.holders[axis]
        )


def _ends(left: Sequence[Axes], terms: Sequence[Axes], part: int, other: int) -> Axes:
    """The axes of the loops that multiply two subsets: operands have all of theirs, products those that are left."""
    sides = (terms[s.bit_length() - 1] if s.bit_count() == 1 else left[s] for s in (part, other))
    return frozenset[str]().union(*sides)


def _united(terms: Sequence[Axes], subset: int) -> Axes:
    return frozenset[str]().union(*(term for n, term in enumerate(terms) if subset >> n & 1))


def _path_of(split: Mapping[int, int], whole: int, count: int) -> Path:
    """The path of a tree of subsets: inner products first, left before right."""
    order: list[int] = []
    stack = [whole]
    while stack:
        subset = stack.pop()
        if subset in split:
            order.append(subset)
            stack += [split[subset], subset ^ split[subset]]
    tensors = [1 << n for n in range(count)]
    path: list[tuple[int, ...]] = []
    for subset in reversed(order):
        taken = tuple(sorted((tensors.index(split[subset]), tensors.index(subset ^ split[subset]))))
        _remove(tensors, taken)
        tensors.append(subset)
        path.append(taken)
    return tuple(path)


def _remove(items: list[T], places: Iterable[int]) -> None:
    for place in sorted(set(places), reverse=True):
        del items[place]


def contractions(spec: Spec, path: Path) -> tuple[tuple[tuple[int, ...], Spec], ...]:
    """The steps of a path over a specification in which every shape is an output row; the last gives the result.

    Of each step the tensors that it takes (numbers from that of the operands on are earlier steps) and what it does.
    """
    shapes = list(spec.operands)
    tensors = list(range(len(shapes)))
    needed = Counter(axis for shape in (*shapes, spec.result) for axis in _axes(shape))
    steps: list[tuple[tuple[int, ...], Spec]] = []
    for taken in path:
        operands = tuple(shapes[n] for n in taken)
        needed.subtract(axis for shape in operands for axis in _axes(shape))
        _remove(shapes, taken)
        result = _between(operands, needed, spec.span) if shapes else spec.result
        needed.update(_axes(result))
        steps.append((tuple(tensors[n] for n in taken), _step(spec, operands, result)))
        shapes.append(result)
        _remove(tensors, taken)
        tensors.append(len(spec.operands) + len(steps) - 1)
    return tuple(steps)


def _between(operands: Sequence[ShapeSpec], needed: Counter[str], span: Span) -> ShapeSpec:
    """The shape of a product that is no result: the axes that later shapes have, in order of appearance."""
    axes: dict[str, Axis] = {}
    dots = False
    for shape in operands:
        dots = dots or (output_row(shape).variable is not None and 0 < needed[VARIABLE])
        for axis in shape.axes():
            if isinstance(axis, AxisLabel) and 0 < needed[axis.name]:
                axes.setdefault(axis.name, axis)
    empty = SpecRow((), None, ())
    row = SpecRow((), VARIABLE if dots else None, tuple(axes.values()))
    return ShapeSpec((empty, empty, row), span)


def _step(spec: Spec, operands: tuple[ShapeSpec, ...], result: ShapeSpec) -> Spec:
    """The specification of one step; its text is written anew."""
    text = f"{','.join(map(_spelled, operands))}->{_spelled(result)}"
    whole = text if len(operands) < len(spec.operands) else spec.text
    return Spec(operands, result, spec.named, whole, spec.span, subscripts=True)


def _spelled(shape: ShapeSpec) -> str:
    row = output_row(shape)
    sides = ["".join(_letter(axis) for axis in axes) for axes in (row.leading, row.trailing)]
    return ("..." if row.variable is not None else "").join(sides)


def _letter(axis: Axis) -> str:
    match axis:
        case AxisLabel():
            return axis.name
        case Fixed():
            return str(axis.position)
        case _:
            return axis.span.text()
