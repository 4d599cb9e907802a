"""Kernels of the readers of matrices that are walked in several directions: see ``directions.py``.

Example, the way back of attention:
    in:   m, l, dl and dq go by rows i, dk and dv by rows j; dl is read beside its own rows, for dq, and for dk
    out:  kernels (m, l, dl, dq) and (dk, dv)

What is computed from reduced rows row by row stays in their kernel. All matrices of a program are looked at in one
traversal of it: which exits a value is computed from, wherever that is, is a number with a bit for each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from ilang.core.ir.assignments import sources
from ilang.core.ir.shaped import Assignment, Read, Shaped
from ilang.core.record import replace
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.wide_matrices import Exit, Matrices


def shared_out(shaped: Shaped, inlining: Inlining, groups: Sequence[Matrices]) -> list[Matrices]:
    """Matrices with their kernels.

    Args:
        shaped: the program.
        inlining: who reads each value.
        groups: the matrices, what reads them, and no kernels.
    """
    reachability = _Reachability(shaped, groups)
    return [_Kernels(shaped, inlining, group, reachability).matrices() for group in groups]


class _Reachability:
    """The exits of matrices from which each value is computed, as a bit of a number for each of them."""

    def __init__(self, shaped: Shaped, groups: Sequence[Matrices]) -> None:
        self.exits = sorted({value for matrices in groups for value in matrices.exits})
        bits = {value: 1 << n for n, value in enumerate(self.exits)}
        self.masks: list[int] = []
        for node in shaped.nodes:
            mask = 0
            for source in sources(node):
                mask |= self.masks[source] | bits.get(source, 0)
            self.masks.append(mask)

    def among(self, value: int, exits: Mapping[int, Exit]) -> dict[int, bool]:
        """The exits, among some, that a value is computed from which is none of their rows."""
        mask = self.masks[value]
        return {each: False for each in exits if mask >> bisect_left(self.exits, each) & 1}


class _Kernels:
    """The exits of some matrices, shared out to kernels."""

    def __init__(
        self, shaped: Shaped, inlining: Inlining, group: Matrices, reachability: _Reachability
    ) -> None:
        self.shaped = shaped
        self.inlining = inlining
        self.group = group
        self.reachability = reachability
        self.axes = dict(group.axes)
        self.exits = group.exits
        self.rows: set[int] = set()
        self.reach: dict[int, dict[int, bool]] = {}
        self.number: dict[int, int] = {}

    def matrices(self) -> Matrices:
        """The matrices with their kernels."""
        todo = sorted(self.axes)
        while todo:
            value = heappop(todo)
            if value in self.reach:
                continue
            self._reach(value)
            if value in self.rows or (value in self.exits and self.exits[value].is_row):
                for reader, _ in self.inlining.all_reads[value]:
                    heappush(todo, reader)
        count = 0
        labels: list[int] = []
        for value in sorted(self.exits):
            label = self.exits[value].label
            least = self._least(value)
            later = (n for n in range(least, count) if labels[n] == label)
            self.number[value] = next(later, count)
            if self.number[value] == count:
                labels.append(label)
                count += 1
        self._merge(labels)
        self._prune()
        used = sorted(set(self.number.values()))
        kernels = tuple(tuple(v for v in sorted(self.exits) if self.number[v] == n) for n in used)
        return replace(self.group, axes=self.axes, rows=frozenset(self.rows), kernels=kernels)

    def _prune(self) -> None:
        read: set[int] = set()
        for value in sorted(self.axes, reverse=True):
            node = self.shaped.nodes[value]
            if value in self.rows and value not in read:
                self.rows.discard(value)
                del self.axes[value]
            elif isinstance(node, Assignment):
                read.update(node.values())

    def _reach(self, value: int) -> None:
        node = self.shaped.assignment(value)
        reached: dict[int, bool] = {}
        is_row = value not in self.axes and self._is_row(value, node)
        inside = is_row or value in self.axes
        for read in node.reads:
            by_rows = inside and self._goes_along(value, read)
            for number, by_row in self._from(read.value).items():
                reached[number] = reached.get(number, True) and by_row and by_rows
        others = [each.source for each in node.lookups()]
        for source in others if node.base is None else [*others, node.base]:
            reached.update(dict.fromkeys(self._from(source), False))
        self.reach[value] = reached
        if is_row and all(reached.values()):
            self.rows.add(value)
        elif is_row:
            del self.axes[value]

    def _from(self, source: int) -> dict[int, bool]:
        """The exits that what reads a value is computed from, and whether row by row alone."""
        known, reach = self.exits.get(source), self.reach.get(source)
        reach = self.reachability.among(source, self.exits) if reach is None else reach
        if known is None:
            return reach
        return {**(reach if known.is_row else dict.fromkeys(reach, False)), source: known.is_row}

    def _goes_along(self, value: int, read: Read) -> bool:
        """Whether what is read is a matrix, or a row's value that stands beside that very row."""
        if read.value not in self.axes:
            return False
        producer, labels = self.shaped.assignment(read.value), self.axes[value]
        pairs = zip(producer.target, read.index, strict=True)
        return all(
            (dim := target.axis()) is None
            or ((axis := index.axis()) is not None and labels[axis] == self.axes[read.value][dim])
            for target, index in pairs
        )

    def _is_row(self, value: int, node: Assignment) -> bool:
        if node.acc is not None or node.base is not None or node.lookups():
            return False
        labels: list[int | None] = [None] * len(node.axes)
        for read in node.reads:
            known = self.exits.get(read.value)
            if read.value not in self.rows and (known is None or not known.is_row):
                continue
            producer = self.shaped.assignment(read.value)
            for target, index in zip(producer.target, read.index, strict=True):
                dim, axis = target.axis(), index.axis()
                if dim is not None and axis is not None and labels[axis] is None:
                    labels[axis] = self.axes[read.value][dim]
        if not labels or None in labels or len(set(labels)) != len(labels):
            return False
        self.axes[value] = tuple(labels)
        return True

    def _least(self, value: int) -> int:
        """The first kernel in which everything that an exit is computed from is there."""
        label = self.exits[value].label
        return max(
            (
                self.number[each] + (not by_row or self.exits[each].label != label)
                for each, by_row in self.reach[value].items()
            ),
            default=0,
        )

    def _merge(self, labels: Sequence[int]) -> None:
        """Let kernels run with later ones of their direction, where nothing between needs them."""
        needing: dict[int, list[tuple[int, bool]]] = {each: [] for each in self.exits}
        for value in self.exits:
            for each, by_row in self.reach[value].items():
                needing[each].append((value, by_row))
        for first in range(len(labels)):
            values = [value for value, number in self.number.items() if number == first]
            others = (
                self.number[value] - (not by_row)
                for each in values
                for value, by_row in needing[each]
                if self.number[value] != first
            )
            most = min(others, default=len(labels) - 1)
            used = {n for n in self.number.values() if first < n <= most}
            last = max((n for n in used if labels[n] == labels[first]), default=first)
            self.number.update(dict.fromkeys(values, last))
