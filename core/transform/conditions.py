"""Conditions on axes: what follows from what, and of which rows any element meets them.

A condition is an index that is at least 0.

Example, the columns that a row of a band of ``n`` columns has, and the rows that have any:
    in:   0 <= j, 0 <= n-1-j, 0 <= i-j, 0 <= j-i+8
    out:  0 <= n+7-i     where 0 <= i and 0 < n
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ilang.core.calculus.affine import Affine, Within, axis_index, size_value
from ilang.core.ir.assignments import substituted
from ilang.core.ir.shaped import Assignment, Node, Shaped, Size
from ilang.core.record import record, replace

MOST = 64
"""Conditions on a row, past which it is not said which rows have an element: bounds meet each other in pairs."""


def conditions(guards: Iterable[Within]) -> tuple[Affine, ...]:
    """Guards as conditions."""
    every: list[Affine] = []
    for guard in guards:
        every.append(guard.index.merged())
        if guard.size is not None:
            every.append((size_value(guard.size) - 1 - guard.index).merged())
    return tuple(every)


def moved(condition: Affine, place: Mapping[int, Affine]) -> Affine | None:
    """A condition where axes are indices over others; None where one of its axes has no place."""
    return substituted(condition, place) if condition.axes() <= place.keys() else None


@record
class Bounds:
    """The axes of an assignment, each of which goes from 0 to below its extent; none of them is empty."""

    sizes: Sequence[Size]
    node: Assignment

    def follows(self, condition: Affine, known: Iterable[Affine] = ()) -> bool:
        """Whether a condition holds in every iteration in which those that are ``known`` do."""
        return 0 <= self._least(condition) or any(
            0 <= self._least(condition - each) for each in known
        )

    def rows(self, held: Iterable[Affine]) -> tuple[Within, ...] | None:
        """Conditions on output axes that hold while some iteration over the reduced ones meets all conditions.

        None where that is not said by conditions, or elements are looked up.
        """
        reduced = self.node.reduced_axes()
        left = [*held]
        if any(each.looked for each in left):
            return None
        for axis in reduced:
            left += [axis_index(axis), size_value(self.node.sizes[axis]) - 1 - axis_index(axis)]
        for axis in reduced:
            without = _without(left, axis)
            if without is None or MOST < len(without):
                return None
            left = without
        return tuple(Within(each, None) for each in self.least(left))

    def least(self, held: Iterable[Affine]) -> list[Affine]:
        """Conditions without those that follow from others."""
        left = [each for each in held if not self.follows(each)]
        for each in [*left]:
            others = [other for other in left if other is not each]
            left = others if self.follows(each, others) else left
        return left

    def _least(self, index: Affine) -> int:
        """A number that an index is not below; -1 where it may be below 0."""
        offset = index.offset
        sizes: dict[int, int] = {}
        falling = [(c, self.node.sizes[axis]) for c, axis in index.steps() if c < 0]
        for c, size in (*index.sizes, *falling):
            sizes[size] = sizes.get(size, 0) + c
        offset -= sum(c for c, _ in falling)
        for size, c in sizes.items():
            fixed = self.sizes[size].fixed
            if c < 0 and fixed is None:
                return -1
            offset += c * ((1 if size in self.node.sizes else 0) if fixed is None else fixed)
        return -1 if any(c < 0 for c, _ in index.looked) else offset


def _without(held: Sequence[Affine], axis: int) -> list[Affine] | None:
    """The conditions under which an axis can be such that all hold; None where those are no more than necessary.

    The axis is between bounds, which have to meet: of two steps of which one is 1 an integer is between them, too.
    """
    steps = [(each.coefficient(axis), each) for each in held]
    low = [(c, each) for c, each in steps if c > 0]
    high = [(-c, each) for c, each in steps if c < 0]
    if any(c > 1 for c, _ in low) and any(c > 1 for c, _ in high):
        return None
    met = [d * one + c * other for c, one in low for d, other in high]
    return [*(each for c, each in steps if not c), *dict.fromkeys(met)]


def without_met_guards(shaped: Shaped) -> Shaped:
    """The program without guards that extents prove; itself where there are none.

    Where ``in0`` has 1300 elements and ``i`` goes to 1298:
        in:   out[i] = (in0[i+2] if 0 <= i+2 < 1300 else 0)
        out:  out[i] = in0[i+2]
    """
    nodes = tuple(_without_proved(shaped, node) for node in shaped.nodes)
    changed = any(one is not other for one, other in zip(nodes, shaped.nodes, strict=True))
    return replace(shaped, nodes=nodes) if changed else shaped


def _without_proved(shaped: Shaped, node: Node) -> Node:
    """A node with the guards that may fail."""
    if not isinstance(node, Assignment) or not (
        node.guards or any(read.guards for read in node.reads)
    ):
        return node
    bounds = Bounds(shaped.sizes, node)

    def unmet(guards: tuple[Within, ...]) -> tuple[Within, ...]:
        return tuple(g for g in guards if not all(map(bounds.follows, conditions((g,)))))

    guards = unmet(node.guards)
    reads = tuple(
        read if (left := unmet(read.guards)) == read.guards else replace(read, guards=left)
        for read in node.reads
    )
    same = guards == node.guards and reads == node.reads
    return node if same else replace(node, guards=guards, reads=reads)
