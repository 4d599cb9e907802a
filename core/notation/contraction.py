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

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from typing import TypeVar

from ilang.core.ir.spec import Axis, AxisLabel, Fixed, ShapeSpec, Spec, SpecRow
from ilang.core.ir.syntax import Schedule
from ilang.core.notation.subscripts import VARIABLE, letters, output_row
from ilang.core.record import record
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
        path: list[tuple[int, ...]] = []
        terms = list(self.terms)
        while len(terms) > 2:
            pairs = [p for p in combinations(range(len(terms)), 2) if terms[p[0]] & terms[p[1]]]
            ranked = min(
                pairs or combinations(range(len(terms)), 2),
                key=lambda pair: self._grown(terms, pair),
            )
            path.append(ranked)
            terms = [*_without(terms, ranked), self._product(terms, ranked)]
        return (*path, tuple(range(len(terms))))

    def _product(self, terms: Sequence[Axes], pair: tuple[int, int]) -> Axes:
        """The axes of a product of two that later products or the result still have."""
        others = self.kept.union(*_without(terms, pair))
        return (terms[pair[0]] | terms[pair[1]]) & others

    def _grown(self, terms: Sequence[Axes], pair: tuple[int, int]) -> tuple[int, int]:
        """The growth of a product over its operands, then its cost."""
        one, other = terms[pair[0]], terms[pair[1]]
        grown = self.size(self._product(terms, pair)) - self.size(one) - self.size(other)
        return grown, self.size(one | other)


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
        tensors = [*_without(tensors, taken), subset]
        path.append(taken)
    return tuple(path)


def _without(items: Sequence[T], taken: Sequence[int]) -> list[T]:
    """Items but those at some positions."""
    return [item for n, item in enumerate(items) if n not in taken]


@record
class Contraction:
    """One step of a path: the tensors that it takes, and its specification.

    ``operands``: numbers below that of the operands are operands; those from there on are earlier steps.
    """

    operands: tuple[int, ...]
    spec: Spec


def contractions(spec: Spec, path: Path) -> tuple[Contraction, ...]:
    """The steps of a path over a specification in which every shape is an output row; the last gives the result."""
    shapes = list(spec.operands)
    tensors = list(range(len(shapes)))
    steps: list[Contraction] = []
    for taken in path:
        operands = tuple(shapes[n] for n in taken)
        rest = _without(shapes, taken)
        result = spec.result if not rest else _between(operands, (*rest, spec.result), spec.span)
        steps.append(Contraction(tuple(tensors[n] for n in taken), _step(spec, operands, result)))
        shapes = [*rest, result]
        tensors = [*_without(tensors, taken), len(spec.operands) + len(steps) - 1]
    return tuple(steps)


def _between(operands: Sequence[ShapeSpec], later: Sequence[ShapeSpec], span: Span) -> ShapeSpec:
    """The shape of a product that is no result: the axes that are met again, in order of appearance."""
    needed = frozenset[str]().union(*(_axes(shape) for shape in later))
    axes: dict[str, Axis] = {}
    dots = False
    for shape in operands:
        dots = dots or (output_row(shape).variable is not None and VARIABLE in needed)
        for axis in shape.axes():
            if isinstance(axis, AxisLabel) and axis.name in needed:
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
    """A shape as NumPy writes it."""
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
