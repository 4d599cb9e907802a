"""Loops that read a row at several shifts, as stencils do, from memory that the second cache cannot hold.

Example:
    for j: out[i,j] = in0[i,j] + in0[i,j+1] + in0[i,j+2]

Of the vectors at different shifts one at most begins where a cache line does. A vector of a whole line that begins
elsewhere always takes two lines, one of half a line every other time. Where lines come from far away, halves are
quicker: the three-point stencil of 2,000,000 doubles took 0.81 ms with vectors of 64 bytes, 0.48 with those of 32.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from ilang.core.calculus.affine import row_step
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import parts_of
from ilang.core.ir.scalar import Load, scalars_within
from ilang.core.passes.tightened import SHORT


def reads_shifted_rows(
    program: ir.Program, block: Sequence[ir.Statement], buffers: Iterable[BufferId]
) -> bool:
    """Whether a loop in a block reads a row at several shifts, and what it uses is known not to fit a cache."""
    if not any(_has_shifts(program, loop) for loop in ir.every(block, ir.For)):
        return False
    used = 0
    for number in buffers:
        buffer = program.buffers[number]
        extents = [program.sizes[size].fixed for size in buffer.dims]
        used += prod(extent or 0 for extent in extents) * BYTES[buffer.dtype]
    return program.machine.memory.kept_bytes < used


def _has_shifts(program: ir.Program, loop: ir.For) -> bool:
    """Whether a loop reads a row at several shifts; of the loops inside it all are short."""
    inner = [*ir.every(loop.body, ir.For)]
    extents = {each.variable: program.sizes[each.size].fixed or SHORT + 1 for each in inner}
    if loop.lanes > 1 or any(SHORT < extent for extent in extents.values()):
        return False
    offsets: dict[object, int] = {}
    for s in ir.statements_within(loop.body):
        if not isinstance(s, ir.For | ir.Define | ir.Change | ir.Store):
            return False
        for part in (part for each in parts_of(s) for part in scalars_within(each)):
            if isinstance(part, Load) and row_step(part.index, loop.variable) == 1:
                last = part.index[-1]
                row = part.buffer, part.index[:-1], last - last.offset
                moved = any(last.coefficient(v) and 1 < extent for v, extent in extents.items())
                if moved or offsets.setdefault(row, last.offset) != last.offset:
                    return True
    return False
