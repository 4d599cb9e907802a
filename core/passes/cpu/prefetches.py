"""Elements that are fetched ahead, of arrays that no cache holds: two pages further on than those that are read.

The hardware fetches what lies further on in a page, and stops at its end; a row of a matrix is often a page or more.

Examples, of 4096 x 4096 f32:
    in:   for k1: partial += in0[i,k1]                    in:   tile t[384]: for k: for j': t[j'] += in0[k,384j+j']
    out:  for k1 prefetching in0[i,k1+2048]: ...          out:  the same, which fetches in0[k+1,384j+j']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from ilang.core.calculus.affine import axis_index
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import CacheLines, Tile
from ilang.core.ir.rewriting import substituted
from ilang.core.ir.scalar import Load
from ilang.core.record import replace


def lines_ahead(program: ir.Program, rows: Iterable[Load]) -> tuple[CacheLines, ...]:
    """The lines two pages further on than elements that a loop walks one after the other, of long arrays."""
    memory = program.machine.memory
    lines = []
    for load in rows:
        if _is_long(program, load):
            size = BYTES[load.dtype]
            index = (*load.index[:-1], load.index[-1] + memory.ahead_bytes // size)
            lines.append((memory.line_bytes // size, (replace(load, index=index),)))
    return tuple(lines)


def terms_ahead(program: ir.Program, tile: Tile) -> Iterator[Load]:
    """The elements of a later term that the lanes of a tile of one row read, of long arrays: two pages further on.

    Where a term is longer than that, it is the next one. Several rows of a tile read what is packed.
    """
    if len(program.buffers[tile.buffer].dims) > 1 or not tile.core():
        return
    term, ahead = tile.core()[-1].variable, program.machine.memory.ahead_bytes
    for load in tile.along():
        dims = [program.sizes[size].fixed or 0 for size in program.buffers[load.buffer].dims]
        steps = (part.coefficient(term) * prod(dims[n + 1 :]) for n, part in enumerate(load.index))
        step = sum(steps) * BYTES[load.dtype]
        if 0 < step and _is_long(program, load):
            yield substituted(load, {term: axis_index(term) + -(-ahead // step)})


def _is_long(program: ir.Program, load: Load) -> bool:
    """Whether an array, no scratch, is known to be longer than caches."""
    buffer, core = program.buffers[load.buffer], program.machine.core
    extents = [program.sizes[size].fixed or 0 for size in buffer.dims]
    held = 0 if core is None else core.cache_bytes[-1]
    return not buffer.private and held < prod(extents) * BYTES[load.dtype]
