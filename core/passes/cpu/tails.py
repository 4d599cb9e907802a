"""Split loops of slow work into whole vectors, the last of which overlaps the one before it.

Example, of vectors of 16:
    in:   for j in 0..31: t[j] = exp(in0[j])
    out:  for j in 0..16: t[j] = exp(in0[j])
          for j in 0..16: t[j+15] = exp(in0[j+15])

A tail of single elements would take as long as several vectors. An element that is computed twice gets the same value.
"""

from __future__ import annotations

from ilang.core.calculus.affine import axis_index
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.rewriting import parts_of, reads_of, substituted
from ilang.core.ir.scalar import Apply, scalars_within
from ilang.core.ops import SLOW
from ilang.core.passes.fixed_sizes import size_of_extent
from ilang.core.record import replace


class ShortRows:
    """The rows of a program, and its sizes with those of parts of rows."""

    def __init__(self, program: ir.Program) -> None:
        """For a program before any of its rows is split."""
        self.program = program
        self.sizes = list(program.sizes)

    def parts(self, loop: ir.For) -> tuple[ir.For, ...]:
        """A row as whole vectors and the last one; any other loop alone."""
        if not self._can_overlap(loop):
            return (loop,)
        extent = self.program.sizes[loop.size].fixed or 0
        stores = (store for store in loop.body if isinstance(store, ir.Store))
        types = {self.program.buffers[store.buffer].dtype for store in stores}
        machine = self.program.machine
        lanes = min(map(machine.vector_lanes, types))
        tail = extent % min(map(machine.least_vector_lanes, types))
        page = machine.memory.page_bytes // max(BYTES[each] for each in types)
        if not tail or not lanes <= extent <= page:  # beside a longer row, its tail takes no time
            return (loop,)
        last = {loop.variable: axis_index(loop.variable) + (extent - lanes)}
        body = substituted(loop.body, last)
        return (
            replace(loop, size=size_of_extent(self.sizes, extent - extent % lanes)),
            replace(loop, size=size_of_extent(self.sizes, lanes), body=body, prefetch=None),
        )

    def _can_overlap(self, loop: ir.For) -> bool:
        """Whether a loop does slow work that may be done twice: it stores along memory, and reads nothing of that."""
        if loop != ir.For(loop.variable, loop.size, loop.body, prefetch=loop.prefetch):
            return False
        stores = [s for s in loop.body if isinstance(s, ir.Store)]
        if not stores or not all(isinstance(s, (ir.Define, ir.Store)) for s in loop.body):
            return False
        read = {self.program.owner(buffer) for s in loop.body for buffer, _ in reads_of(s)}
        if not read.isdisjoint(self.program.owner(s.buffer) for s in stores):
            return False
        if any(s.index[-1].coefficient(loop.variable) != 1 for s in stores if s.index):
            return False
        scalars = (part for s in loop.body for each in parts_of(s) for part in scalars_within(each))
        return any(isinstance(part, Apply) and part.primitive in SLOW for part in scalars)
