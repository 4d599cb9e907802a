"""Axes that stand next to each other in compositions wherever they stand are one axis: their sizes do not matter.

Example:
    in:   (a b) c -> c (a b)                 out:  a_b c -> c a_b
    in:   (a b) (c d) -> (a (b c) d)         out:  a_b c_d -> (a_b c_d)

A composition inside a composition is divided like the one around it: the last axis varies fastest in both.

A number is an axis of its own wherever it is written, but in runs of several compositions (``with_alike``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise

from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir import einx
from ilang.core.names import Names
from ilang.core.passes.einx.ellipses import RepeatedForm
from ilang.core.record import record, replace

ListChange = Callable[[Sequence[einx.Item]], Iterable[einx.Item]]
"""A change of the axes and numbers of a list of items; compositions and brackets in it stay."""


@record
class FusedOperation:
    """An operation whose ellipses are repeated and whose axes are fused, with ``sizes`` of axes by name."""

    inputs: tuple[einx.Expression, ...]
    outputs: tuple[einx.Expression, ...]
    sizes: dict[str, int]
    repeated: RepeatedForm

    @property
    def expressions(self) -> tuple[einx.Expression, ...]:
        """All expressions, those of inputs first."""
        return (*self.inputs, *self.outputs)


def fuse(
    inputs: Sequence[einx.Expression], outputs: Sequence[einx.Expression], kept: Collection[str]
) -> tuple[einx.Expression, ...]:
    """Expressions without ellipses whose compositions are flat, those of inputs first.

    Args:
        inputs: their expressions.
        outputs: their expressions.
        kept: axes that stay what they are.
    """
    flat = tuple(replace(each, items=_flat(each.items)) for each in (*inputs, *outputs))
    flat = with_alike(flat, len(inputs))
    pair = _pair(flat, kept)
    if pair is None:
        return flat
    unique = Names(
        {p.leaf.name for each in flat for p in einx.places(each) if isinstance(p.leaf, einx.Axis)}
    )
    while pair is not None:
        name = unique.fresh("_".join(pair))
        joined = partial(_joined, pair=pair, name=name)
        flat = tuple(replace(each, items=_with_leaves(each.items, joined)) for each in flat)
        pair = _pair(flat, kept)
    return flat


def _flat(items: Sequence[einx.Item]) -> tuple[einx.Item, ...]:
    """Items whose compositions hold no compositions."""
    flat: list[einx.Item] = []
    for item in items:
        match item:
            case einx.Composition():
                flat.append(replace(item, items=tuple(_leaves(_flat(item.items)))))
            case einx.Concatenation() | einx.Bracket():
                flat.append(replace(item, items=_flat(item.items)))
            case einx.Repetition():
                raise AssertionError(item)
            case _:
                flat.append(item)
    return tuple(flat)


def _leaves(items: Sequence[einx.Item]) -> Iterator[einx.Item]:
    """The items of a composition, those of compositions among them one by one; brackets around each."""
    for item in items:
        match item:
            case einx.Composition():
                yield from item.items
            case einx.Bracket():
                for each in _leaves(item.items):
                    yield einx.Bracket((each,), each.span)
            case einx.UnnamedAxis(size=1):
                pass
            case _:
                yield item


def _pair(expressions: Sequence[einx.Expression], kept: Collection[str]) -> tuple[str, str] | None:
    """The first two axes that stand next to each other, in this order, wherever one of them stands; or None."""
    after: dict[str, str | None] = {}
    before: dict[str, str | None] = {}
    for expression in expressions:
        for run in _runs(expression.items):
            for one, other in zip([None, *run], [*run, None], strict=True):
                if one is not None and after.setdefault(one, other) != other:
                    after[one] = None
                if other is not None and before.setdefault(other, one) != one:
                    before[other] = None
    for one, other in after.items():
        if other is None or one == other or before[other] != one or {one, other} & set(kept):
            continue
        return one, other
    return None


def _runs(items: Sequence[einx.Item], composed: bool = False) -> Iterator[list[str]]:
    """Axes that stand next to each other in one composition; any other axis alone."""
    run: list[str] = []
    for item in items:
        if isinstance(item, einx.Axis) and composed:
            run.append(item.name)
            continue
        if run:
            yield run
            run = []
        match item:
            case einx.Axis():
                yield [item.name]
            case einx.Composition():
                yield from _runs(item.items, True)
            case einx.Concatenation() | einx.Bracket():
                yield from _runs(item.items)
            case _:
                pass
    if run:
        yield run


def _with_leaves(items: Sequence[einx.Item], change: ListChange) -> tuple[einx.Item, ...]:
    """Items whose axes and numbers are changed, list by list; a composition of one item is that item."""
    changed: list[einx.Item] = []
    for item in change(items):
        inner = _with_leaves(einx.inside(item), change)
        if isinstance(item, einx.Composition) and len(inner) == 1:
            changed.append(inner[0])
        else:
            is_leaf = isinstance(item, einx.Axis | einx.UnnamedAxis)
            changed.append(item if is_leaf else replace(item, items=inner))
    return tuple(changed)


def _joined(items: Sequence[einx.Item], pair: tuple[str, str], name: str) -> Iterator[einx.Item]:
    """The items, with one axis in place of two that stand next to each other."""
    rest = iter(items)
    for item in rest:
        if isinstance(item, einx.Axis) and item.name == pair[0]:
            yield einx.Axis(name, item.span.to(next(rest).span))
        else:
            yield item


Runs = list[list[tuple[int, int]]]
"""Runs of one length that stand in several places: the compositions of each, and where it begins in them."""


def with_alike(flat: Sequence[einx.Expression], inputs: int) -> tuple[einx.Expression, ...]:
    """Expressions of flat compositions, ``inputs`` of them first, in which numbers that are one axis have one place.

    Example:
        in:   a (3 b) -> (3 b) a                 out:  both 3 are one axis, so (3 b) moves whole
        in:   (p 3 b) -> (3 b) p                 out:  the same
        in:   a [(3 b)], [(3 b)] c -> a c        out:  the same: (3 b) is summed whole

    Anywhere else a number is an axis of its own. A run has two axes at least, or is a whole composition. Longer runs
    count first. Runs that would make two numbers of one composition or of one output one axis do not count: nothing
    says which.
    """
    numbers = _Numbers(flat, inputs)
    same = numbers.joined()
    first = [numbers.leaves[same.find(n)] for n in range(len(numbers.leaves))]
    one = {_place(leaf): axis for leaf, axis in zip(numbers.leaves, first, strict=True)}

    def replaced(items: Sequence[einx.Item]) -> Iterator[einx.Item]:
        for item in items:
            axis = one.get(_place(item)) if isinstance(item, einx.UnnamedAxis) else None
            yield item if axis is None else replace(item, place=axis.place, at=axis.at)

    return tuple(replace(each, items=_with_leaves(each.items, replaced)) for each in flat)


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
        for length, runs in reversed(list(_common_runs(self.keys))):
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


def _common_runs(keys: Sequence[Sequence[Hashable]]) -> Iterator[tuple[int, Runs]]:
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
