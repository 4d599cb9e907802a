"""Numbers that are one axis: those in runs of axes that several compositions have alike.

Example:
    in:   a (3 b) -> (3 b) a                 out:  both 3 are one axis, so (3 b) moves whole
    in:   (p 3 b) -> (3 b) p                 out:  the same
    in:   a [(3 b)], [(3 b)] c -> a c        out:  the same: (3 b) is summed whole

Anywhere else a number is an axis of its own. A run has two axes at least, or is a whole composition. Longer runs count
first. Runs that would make two numbers of one composition or of one output one axis do not count: nothing says which.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise

from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir import einx
from ilang.core.record import replace

Runs = list[list[tuple[int, int]]]
"""Runs of one length that stand in several places: the compositions of each, and where it begins in them."""


def with_alike(flat: Sequence[einx.Expression], inputs: int) -> tuple[einx.Expression, ...]:
    """Expressions of flat compositions, ``inputs`` of them first, in which numbers that are one axis have one place."""
    numbers = _Numbers(flat, inputs)
    same = numbers.joined()
    first = [numbers.leaves[same.find(n)] for n in range(len(numbers.leaves))]
    one = {_place(leaf): axis for leaf, axis in zip(numbers.leaves, first, strict=True)}
    return tuple(replace(each, items=_replaced(each.items, one)) for each in flat)


class _Numbers:
    """The numbers in compositions.

    ``keys`` has what is compared of the axes of each composition, ``rows`` which number each is, if any. ``meets`` has
    the compositions and outputs of each number: two numbers of one of them are two axes.
    """

    def __init__(self, flat: Sequence[einx.Expression], inputs: int) -> None:
        """Number them, from the first expression on."""
        self.leaves: list[einx.UnnamedAxis] = []
        self.keys: list[list[Hashable]] = []
        self.rows: list[list[int | None]] = []
        self.meets: list[set[int]] = []
        known: dict[Hashable, int] = {}
        for n, expression in enumerate(flat):
            for composition in _compositions(expression.items, False):
                whole = len(self.rows) if n < inputs else -n
                self.keys.append(list(map(_key, composition)))
                self.rows.append([])
                for each in composition:
                    number = None
                    if isinstance(each.leaf, einx.UnnamedAxis):
                        number = known.setdefault(_place(each.leaf), len(known))
                        if number == len(self.leaves):
                            self.leaves.append(each.leaf)
                            self.meets.append(set())
                        self.meets[number].add(whole)
                    self.rows[-1].append(number)

    def joined(self) -> UnionFind:
        """The numbers, those that are one axis in one set."""
        same = UnionFind(len(self.leaves))
        for length, runs in reversed(list(_runs(self.keys))):
            pairs = [list(self._pairs(run, length)) for run in runs]
            trial = same.copied()
            for pair in (pair for each in pairs for pair in each):
                trial.union(*pair)
            met = Counter(
                (trial.find(n), one) for n, meets in enumerate(self.meets) for one in meets
            )
            torn = {root for (root, _), count in met.items() if 1 < count}
            for each in pairs:
                if torn.isdisjoint(trial.find(one) for one, _ in each):
                    for pair in each:
                        same.union(*pair)
        return same

    def _pairs(self, run: Sequence[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
        for (composition, start), (other, begin) in pairwise(run):
            for k in range(length):
                pair = self.rows[composition][start + k], self.rows[other][begin + k]
                if pair[0] is not None and pair[1] is not None:
                    yield pair[0], pair[1]


def _runs(keys: Sequence[Sequence[Hashable]]) -> Iterator[tuple[int, Runs]]:
    """The runs that stand in several places, by length, the shortest first; of one axis if that is all there is."""
    length, ends = 1, keys
    while True:
        starts: defaultdict[Hashable, list[tuple[int, int]]] = defaultdict(list)
        for number, row in enumerate(ends):
            for start, key in enumerate(row):
                starts[key].append((number, start))
        several = [run for run in starts.values() if 1 < len(run)]
        if not several:
            return
        whole = [[(n, at) for n, at in run if len(keys[n]) == 1] for run in several]
        yield length, whole if length == 1 else several
        numbers = {key: name for name, key in enumerate(starts)}
        ends = [
            [(numbers[key], after) for key, after in zip(row, keys[n][length:], strict=False)]
            for n, row in enumerate(ends)
        ]
        length += 1


def _compositions(items: Sequence[einx.Item], marked: bool) -> Iterator[list[einx.Occurrence]]:
    """The axes of each composition; ``marked``: brackets are around all of them."""
    for item in items:
        if isinstance(item, einx.Composition):
            yield [replace(each, marked=marked or each.marked) for each in einx.places(item)]
        else:
            yield from _compositions(einx.inside(item), marked or isinstance(item, einx.Bracket))


def _key(each: einx.Occurrence) -> Hashable:
    """The parts of an axis that are compared: two with the same may be one."""
    leaf = each.leaf
    return each.marked, leaf.name if isinstance(leaf, einx.Axis) else (leaf.size, leaf.at)


def _place(leaf: einx.UnnamedAxis) -> Hashable:
    return leaf.place, leaf.at


def _replaced(
    items: Sequence[einx.Item], one: Mapping[Hashable, einx.UnnamedAxis]
) -> tuple[einx.Item, ...]:
    replaced: list[einx.Item] = []
    for item in items:
        match item:
            case einx.UnnamedAxis():
                axis = one.get(_place(item), item)
                replaced.append(replace(item, place=axis.place, at=axis.at))
            case einx.Composition():
                inner = _replaced(item.items, one)
                replaced.append(inner[0] if len(inner) == 1 else replace(item, items=inner))
            case einx.Concatenation() | einx.Bracket():
                replaced.append(replace(item, items=_replaced(item.items, one)))
            case _:
                replaced.append(item)
    return tuple(replaced)
