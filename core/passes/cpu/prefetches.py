"""Elements that are fetched ahead, of arrays that no cache holds: two pages further on than those that are read.

The hardware fetches what lies further on in a page, and stops at its end; a row of a matrix is often a page or more.

Example, of 4096 x 4096 f32:
    in:   for k1: partial += in0[i,k1]
    out:  for k1 prefetching in0[i,k1+2048]: ...
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import CacheLines
from ilang.core.ir.scalar import Load
from ilang.core.record import replace


def lines_ahead(program: ir.Program, rows: Iterable[Load]) -> tuple[CacheLines, ...]:
    """The lines two pages further on than elements that a loop walks one after the other, of long arrays."""
    memory, core = program.machine.memory, program.machine.core
    held, lines = 0 if core is None else core.cache_bytes[-1], []
    for load in rows:
        buffer, size = program.buffers[load.buffer], BYTES[load.dtype]
        elements = prod(program.sizes[extent].fixed or 0 for extent in buffer.dims)
        if not buffer.private and held < elements * size:
            index = (*load.index[:-1], load.index[-1] + memory.ahead_bytes // size)
            lines.append((memory.line_bytes // size, (replace(load, index=index),)))
    return tuple(lines)
