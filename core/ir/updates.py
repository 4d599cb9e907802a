"""Updates, the values that take the place of others in memory: what each stores, and where together they store all.

Example, of a concatenation of 3 and of 4 elements:
    in:   t1[n] = 0;  t2 = t1 with t2[a] = in0[a];  out = t2 with out[b+3] = in1[b]
    out:  t1 is overwritten: t2 stores the elements from 0 on along dimension 0, and out those from 3 on
    in:   t1[n] = 0;  t2 = t1 with t2[a] = in0[a];  out = t2 with out[b+2] = in1[b]     2 of 6 elements stay 0
    out:  nothing

Nothing reads a value that has others in its place, so all that counts is what is there after the last of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ilang.core.calculus.affine import Affine, canonical, size_value, with_extents
from ilang.core.ir.ids import ValueId
from ilang.core.ir.shaped import Assignment, Shaped

Box = tuple[tuple[Affine, Affine], ...]
"""The elements that an assignment stores: of each dimension the first index, and the one past the last."""


Partition = tuple[int, tuple[tuple[ValueId, Affine], ...]]
"""The dimension along which values follow each other that together store every element, and each with its first."""


def overwritten_values(shaped: Shaped) -> frozenset[ValueId]:
    """The values in whose place others store all elements before anything reads one: they need no loops."""
    updates = Updates(shaped)
    return frozenset(base for base in updates.bases if updates.partition(base) is not None)


class Updates:
    """The updates of a program; ``bases`` has the value in whose place each other one stands, and that one."""

    def __init__(self, shaped: Shaped) -> None:
        self.shaped = shaped
        self.bases = {
            node.base: value
            for value, node in shaped.numbered()
            if isinstance(node, Assignment) and node.base is not None
        }
        self._sums = {
            rule.size: Affine((), rule.whole.offset(), sizes=rule.whole.steps())
            for rule in shaped.derived
            if rule.whole.operation == "+"
            and rule.divisor.constant() == 1
            and not (rule.known or rule.least or rule.spread)
        }

    def after(self, value: ValueId) -> list[ValueId]:
        """The values that take the place of a value, in order."""
        values = []
        while value in self.bases:
            value = self.bases[value]
            values.append(value)
        return values

    def partition(self, base: ValueId) -> Partition | None:
        """The values that store every element in the place of another one; None where some elements are left."""
        dims = self.shaped.tensors[base].dims
        whole = tuple((Affine(()), self._extent(size)) for size in dims)
        boxes: dict[ValueId, Box] = {}
        for value in self.after(base):
            box = self._box(self.shaped.assignment(value))
            if box is None:
                break
            boxes[value] = box
        partitions = (_partition(boxes, whole, dim) for dim in range(len(dims)))
        return next((each for each in partitions if each is not None), None)

    def _box(self, node: Assignment) -> Box | None:
        """The elements that an assignment stores; None where they are no box, or where it reads or leaves out some."""
        axes = [axis for index in node.target for axis in index.variables()]
        if node.acc is not None or node.guards or node.scatters() or len({*axes}) < len(axes):
            return None
        box = []
        for index in node.target:
            if any(c != 1 for c, _ in index.steps()) or len(index.steps()) > 1:
                return None
            first = self._known(index.without(index.variables()))
            extents = [self._extent(node.sizes[axis]) for axis in index.variables()]
            box.append((first, first + (extents[0] if extents else 1)))
        return tuple(box)

    def _extent(self, size: int) -> Affine:
        return self._known(size_value(size))

    def _known(self, index: Affine) -> Affine:
        """An index in which sizes are numbers, or sums of others, where they are."""
        for size, total in reversed(self._sums.items()):  # each of sizes that come before
            c = sum(c for c, each in index.sizes if each == size)
            index = index + c * (total - size_value(size)) if c else index
        return with_extents(index, lambda size: self.shaped.sizes[size].fixed)


def _partition(boxes: dict[ValueId, Box], whole: Box, dim: int) -> Partition | None:
    """The boxes that follow each other along a dimension from end to end, whole in all others; None without these."""
    others = _without(whole, dim)
    begun = {
        canonical(box[dim][0]): value
        for value, box in boxes.items()
        if _without(box, dim) == others
    }
    at, end = whole[dim]
    parts: list[tuple[ValueId, Affine]] = []
    while canonical(at) != canonical(end):
        value = begun.pop(canonical(at), None)
        if value is None:
            return None
        parts.append((value, at))
        at = boxes[value][dim][1]
    return dim, tuple(parts)


def _without(box: Sequence[tuple[Affine, Affine]], dim: int) -> list[Hashable]:
    ends = [end for n, each in enumerate(box) if n != dim for end in each]
    return [canonical(end) for end in ends]
