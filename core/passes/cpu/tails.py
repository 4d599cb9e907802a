"""Split loops of slow work, and of maxima, into whole vectors, the last of which overlaps the one before it.

Example, of vectors of 16:
    in:   for j in 0..31: t[j] = exp(in0[j])
    out:  for j in 0..16: t[j] = exp(in0[j])
          for j in 0..16: t[j+15] = exp(in0[j+15])

A tail of single elements would take as long as several vectors. Rows shorter than a vector have two of half of one. An
element that is computed twice gets the same value: a maximum of rows that it has seen already does not change. The
vectors of a row of which one variable becomes the maximum are read side by side:
    in:   for j in 0..31: acc = max(acc, in0[j])
    out:  for j in 0..16: acc = max(acc, in0[j]);  acc = max(acc, in0[j+15])
"""

from __future__ import annotations

from collections.abc import Iterator

from ilang.core.calculus.affine import axis_index, row_step
from ilang.core.calculus.extent import size as size_of
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.rewriting import parts_of, substituted
from ilang.core.ir.scalar import Apply, Load, Local, Scalar, Select, scalars_within
from ilang.core.ops import SLOW
from ilang.core.passes.cpu.extremes import extreme_of
from ilang.core.passes.fixed_sizes import FixedSizes
from ilang.core.record import replace

LONGEST_BYTES = 4096
"""Of a row beside which a tail still takes time."""
SIDE_BY_SIDE = 8
"""Parts of a row at most that are read side by side: beside more of them a tail does not count."""


class ShortRows:
    """The rows of a program, and its sizes with those of parts of rows."""

    def __init__(self, program: ir.Program) -> None:
        """For a program before any of its rows is split."""
        self.program = program
        self.sizes = list(program.sizes)
        self.fixed = FixedSizes(self.sizes)

    def parts(self, loop: ir.For) -> tuple[ir.For, ...]:
        """A row as whole vectors and the last one; any other loop alone."""
        extent = self.program.sizes[loop.size].fixed or 0
        several = any(isinstance(s, ir.For) for s in loop.body)
        if not extent or not _is_plain(loop):
            return (loop,)
        if _is_extreme(loop):
            return (self._side_by_side(loop, extent),)
        if not self._can_overlap(loop, several):
            return (loop,)
        stores = (store for store in loop.body if isinstance(store, ir.Store))
        types = {self.program.buffers[store.buffer].dtype for store in stores}
        machine = self.program.machine
        lanes = min(map(machine.vector_lanes, types))
        half = lanes // 2  # compilers make vectors of half of them of what whole ones leave over
        lanes = half if extent < lanes and not several else lanes
        tail = extent % (lanes if several else half)
        longest = LONGEST_BYTES // max(BYTES[each] for each in types)
        # Beside a longer row a tail takes no time, nor does one of a single element beside several terms.
        if tail < 1 + several or not lanes <= extent <= longest:
            return (loop,)
        last = {loop.variable: axis_index(loop.variable) + (extent - lanes)}
        body = substituted(loop.body, last)
        return (
            replace(loop, end=self.fixed.extent(extent - extent % lanes)),
            replace(loop, end=self.fixed.extent(lanes), body=body),
        )

    def _side_by_side(self, loop: ir.For, extent: int) -> ir.For:
        """A row of which variables become the extremes, its vectors in one iteration; itself where they divide it."""
        types = [s.value.dtype or "" for s in loop.body if isinstance(s, ir.Change)]
        lanes = min(map(self.program.machine.vector_lanes, types))
        if not lanes < extent <= SIDE_BY_SIDE * lanes or extent % (lanes // 2) == 0:
            return loop
        starts = [*range(0, extent - lanes, lanes), extent - lanes]
        parts = (
            substituted(loop.body, {loop.variable: axis_index(loop.variable) + start})
            for start in starts
        )
        body = tuple(s for part in parts for s in part)
        return replace(loop, end=self.fixed.extent(lanes), body=body)

    def _can_overlap(self, loop: ir.For, several: bool) -> bool:
        """Whether a loop does slow work, or reduces ``several`` terms, and may do it twice.

        Such a loop stores along memory. Of what it stores it reads nothing, but for an element that becomes the larger
        of itself and another, or the smaller.
        """
        body = [*ir.statements_within(loop.body)]
        stores = [s for s in loop.body if isinstance(s, ir.Store)]
        if not stores or len(stores) < sum(isinstance(s, ir.Store) for s in body):
            return False
        if any(s.index[-1].coefficient(loop.variable) != 1 for s in stores if s.index):
            return False
        stored = {self.program.owner(s.buffer) for s in stores}
        slow = False
        for s in body:
            if not isinstance(s, ir.Define | ir.Change | ir.Store | ir.For) or not _is_plain(s):
                return False
            for part in _computed(s):
                if isinstance(part, Load) and self.program.owner(part.buffer) in stored:
                    return False
                slow |= isinstance(part, Apply) and part.primitive in SLOW
        return slow or several


def _is_extreme(loop: ir.For) -> bool:
    """Whether all that a loop does is that variables become the larger of themselves and others, or the smaller.

    Such a loop walks what it reads along memory, and quick work finds the others.
    """
    changed = {s.variable for s in loop.body if isinstance(s, ir.Change)}
    for s in loop.body:
        if not isinstance(s, ir.Change) or extreme_of(s) is None:
            return False
        _, _, *read = parts_of(s)
        for part in read:
            if isinstance(part, Load) and row_step(part.index, loop.variable) not in (0, 1):
                return False
            if isinstance(part, Select) or (isinstance(part, Local) and part.variable in changed):
                return False
            if isinstance(part, Apply) and part.primitive in SLOW:
                return False
    return True


def _is_plain(s: ir.Statement) -> bool:
    """Whether a statement is no loop, or one of which nothing but its iterations is said."""
    if not isinstance(s, ir.For):
        return True
    manner = s.manner if isinstance(s.manner, ir.Unrolled) else None
    return s == ir.For(s.variable, size_of(s.size), s.body, manner=manner)


def _computed(s: ir.Statement) -> Iterator[Scalar]:
    """The scalars of a statement, without an element that becomes the larger of itself and another, or the smaller."""
    if not isinstance(s, ir.Store) or not isinstance(s.value, Apply):
        return parts_of(s)
    stored = Load(s.buffer, s.index, s.value.dtype or "")
    left = [*s.value.arguments]
    if s.value.primitive in ("max", "min") and stored in left:
        left.remove(stored)
        return (part for each in left for part in scalars_within(each))
    return parts_of(s)
