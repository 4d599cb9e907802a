"""Prefetch what loops store along memory: a far line is there when it is written.

Example, 4096 bytes further on and 512 bytes at a time:
    in:   for j: out[i,j] = in0[i,j] + in1[j]
    out:  for j prefetching out[i,j+1024] and in0[i,j+1024] by 128: out[i,j] = in0[i,j] + in1[j]

The hardware prefetcher stops at the end of a page, and a row of a matrix is often a page. Elements that a vectorized
loop prefetches already (``lanes.py``) are not prefetched twice.
"""

from __future__ import annotations

from ilang.core.calculus.affine import row_step
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import CacheLines, Prefetch
from ilang.core.ir.scalar import Apply, Load, scalars_within
from ilang.core.ops import SLOW
from ilang.core.passes.cpu.shifted import has_shifts
from ilang.core.record import replace

MOST_ROWS = 2
"""Rows at most that a loop prefetches, the stored one included: more of them keep memory busy by themselves."""


def fetched_buffers(program: ir.Program) -> frozenset[int]:
    """The buffers that loops of a program prefetch."""
    return frozenset(
        load.buffer
        for kernel in program.kernels
        for s in ir.every(kernel.body, ir.For)
        if s.prefetch is not None
        for _, loads in s.prefetch.lines
        for load in loads
    )


def prefetch_of_stores(
    program: ir.Program, fetched: frozenset[int], loop: ir.For
) -> Prefetch | None:
    """The prefetch of what a loop stores next, where that pays, but for buffers that others have ``fetched``."""
    rows = _rows(program, fetched, loop)
    if not rows or MOST_ROWS < len(rows):
        return None
    memory, size = program.machine.memory, BYTES[rows[0].dtype]
    return Prefetch(memory.fetched_bytes // size, tuple(_lines(program, row) for row in rows))


def _lines(program: ir.Program, row: Load) -> CacheLines:
    memory, size = program.machine.memory, BYTES[row.dtype]
    further = (*row.index[:-1], row.index[-1] + memory.page_bytes // size)
    return memory.line_bytes // size, (replace(row, index=further),)


def _rows(program: ir.Program, fetched: frozenset[int], loop: ir.For) -> tuple[Load, ...]:
    """Elements that a loop stores, and reads alike, one after the other; none where a prefetch does not pay.

    Fetching pays where a loop only computes and stores elements of an output, without an exponential or the like, which
    takes longer than the memory.
    """
    store = loop.body[-1] if loop.body else None
    plain = not loop.within and loop.chunk is None and loop.role not in ("u", "v")
    if not plain or loop.lanes > 1 or has_shifts(program, loop):
        return ()
    if not isinstance(store, ir.Store) or not store.index or store.buffer in fetched:
        return ()
    buffer, extent = program.memory(store.buffer), program.sizes[loop.size].fixed
    if buffer.role != "output" or row_step(store.index, loop.variable) != 1:
        return ()
    if extent is not None and extent * BYTES[buffer.dtype] < program.machine.memory.page_bytes:
        return ()
    rows = {store.buffer: Load(store.buffer, store.index, buffer.dtype)}
    for s in loop.body:
        if not isinstance(s, (ir.Define, ir.Store)) or (isinstance(s, ir.Define) and s.mutable):
            return ()
        for part in scalars_within(s.value):
            if isinstance(part, Apply) and part.primitive in SLOW:
                return ()
            if not isinstance(part, Load):
                continue
            if part.buffer == store.buffer:
                return ()
            alike = part.index == store.index and part.buffer not in fetched
            if alike and not program.buffers[part.buffer].private:
                rows[part.buffer] = part
    return tuple(rows.values())
