"""Axes whose size is decided: which of them are one, with what unit, and whether they may stretch.

Sizes that were written down stand in cells: axes that are made equal share one. A cell holds the unit of its axes, and
whether it may stretch. Conclusions from a cell must hold whatever else becomes known of it, or else the answer would
depend on the order of the constraints. So nothing follows from a cell that stretches so far, beyond its size: a cell
that turns out rigid wakes every comparison that had relied on its stretching, and an axis above one of size 1 is of
size 1 and stretches until something makes it rigid. Units that differ are looked at when an axis is closed.
"""

from __future__ import annotations

from collections import deque

from ilang.core.infer import conflicts
from ilang.core.infer.unionfind import UnionFind
from ilang.core.ir.rows import Constraint, DimBelow, Known, Origin, Var


class Cells:
    """The cells of one run of the solver."""

    def __init__(self, queue: deque[Constraint], waiting: dict[int, list[Constraint]]) -> None:
        """Constraints that come up are added to ``queue``; those in ``waiting`` wait for a variable."""
        self.queue = queue
        self.waiting = waiting
        self._cell_of: dict[Known, int] = {}
        self._cells = UnionFind(0)
        self._speaks: list[Known] = []  # the axis of each cell whose size all of them have
        self._kin = UnionFind(0)
        """Cells of one unit."""
        self._labels: list[tuple[str, Origin] | None] = []
        self._rigid: list[bool] = []
        self._asleep: list[list[DimBelow]] = []
        self._free: list[bool] = []  # whether an axis that may stretch by its nature is in the cell
        self._computed: list[int] = []
        self.has_units = False

    def cell(self, known: Known) -> int:
        """The number of what all axes are that are one with an axis."""
        number = self._cell_of.get(known)
        if number is None:
            number = self._cell_of[known] = self._cells.add()
            self._kin.add()
            self._speaks.append(known)
            self._labels.append(None if known.label is None else (known.label, known.origin))
            self.has_units = self.has_units or known.label is not None
            self._rigid.append(not known.stretch)
            self._free.append(known.stretch)
            self._asleep.append([])
        return self._cells.find(number)

    def stretches(self, known: Known) -> bool:
        """Whether an axis, as far as is known, is the stretchable 1."""
        return not self._rigid[self.cell(known)]

    def _related(self, one: int, other: int, origin: Origin) -> None:
        """Two cells have one unit: one without a unit adopts the other's, now or later."""
        a, b = sorted((self._kin.find(one), self._kin.find(other)))
        left, right = self._labels[a], self._labels[b]
        if left is not None and right is not None and left[0] != right[0]:
            raise conflicts.labels_differ(left, right, origin)
        self._kin.union(a, b)
        self._labels[a] = left or right

    def merge(self, one: Known, other: Known, origin: Origin, code: str) -> None:
        """Let two known axes be one: of two numbers, only the same."""
        if one.size != other.size and isinstance(one.size, int) and isinstance(other.size, int):
            raise conflicts.sizes_differ(one, other, origin, code)
        a, b = sorted((self.cell(one), self.cell(other)))
        if a == b:
            return
        self._related(a, b, origin)
        rigid = self._rigid[a] or self._rigid[b]
        self._cells.union(a, b)
        self._speak(a, self._speaks[b])
        self._asleep[a] += self._asleep[b]
        self._rigid[a] = rigid
        self._free[a] = self._free[a] or self._free[b]
        if rigid:
            self._wake(a)

    def _speak(self, cell: int, other: Known) -> None:
        """Let a number speak for a cell, else the older run-time size; wake what waits for another one."""
        held = self._speaks[cell]
        if held.size == other.size:
            return
        sizes = [known.size for known in (held, other) if isinstance(known.size, Var)]
        if isinstance(held.size, Var) and (
            isinstance(other.size, int) or other.size.number < held.size.number
        ):
            self._speaks[cell] = other
        for size in sizes:
            self.queue.extend(self.waiting.pop(size.number, ()))

    def computed(self, size: int, origin: Origin) -> Known:
        """An axis whose size is computed.

        A 1 is as rigid as a written one, unless it is one with an axis that stretches: which of the two, ``harden``
        decides when everything that follows is drawn.
        """
        known = Known(size, origin, stretch=size == 1)
        if known.stretch:
            cell = self.cell(known)
            self._free[cell] = False
            self._computed.append(cell)
        return known

    def harden(self) -> bool:
        """Make computed axes of size 1 rigid; whether that made any."""
        if not self._computed:
            return False
        cells = [cell for cell in map(self._cells.find, self._computed) if not self._rigid[cell]]
        self._computed = []
        rigid = [cell for cell in cells if not self._free[cell]]
        for cell in rigid:
            self._rigid[cell] = True
            self._wake(cell)
        return bool(rigid)

    def _wake(self, cell: int) -> None:
        """Look again at what had relied on the stretching of a cell."""
        self.queue.extend(self._asleep[cell])
        self._asleep[cell] = []

    def speaker(self, known: Known) -> Known:
        """The axis that stands for those that are one with an axis."""
        return self._speaks[self.cell(known)]

    def unit(self, known: Known) -> str | None:
        """The unit of an axis."""
        label = self._labels[self._kin.find(self.cell(known))]
        return None if label is None else label[0]

    def rely(self, known: Known, c: DimBelow) -> bool:
        """Whether an axis stretches, as far as is known: a comparison that relies on this is looked at again."""
        cell = self.cell(known)
        if not self._rigid[cell]:
            self._asleep[cell].append(c)
        return not self._rigid[cell]
