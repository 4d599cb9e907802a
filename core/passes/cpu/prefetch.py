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
from ilang.core.ir.rewriting import unless_same, with_bodies
from ilang.core.ir.scalar import Apply, Load, scalars_within
from ilang.core.ops import SLOW
from ilang.core.passes.cpu.shifted import has_shifts
from ilang.core.record import replace


def kernel_to_prefetch(program: ir.Program) -> ir.Program:
    """The program with software prefetches of what loops store next, where that pays."""
    fetched = frozenset(
        load.buffer
        for kernel in program.kernels
        for s in ir.every(kernel.body, ir.For)
        if s.prefetch is not None
        for lines in s.prefetch.lines
        for load in lines.loads
    )
    return with_bodies(program, lambda kernel: _block(program, fetched, kernel.body))


def _block(program: ir.Program, fetched: frozenset[int], block: ir.Block) -> ir.Block:
    return unless_same(block, [_statement(program, fetched, s) for s in block])


def _statement(program: ir.Program, fetched: frozenset[int], s: ir.Statement) -> ir.Statement:
    """A statement whose loops fetch, but for buffers that others have ``fetched``; tiles store in registers."""
    if isinstance(s, ir.Tile):
        return s
    s = ir.map_blocks(s, lambda block: _block(program, fetched, block))
    rows = _rows(program, fetched, s) if isinstance(s, ir.For) else ()
    if not isinstance(s, ir.For) or not rows:
        return s
    memory, size = program.machine.memory, BYTES[rows[0].dtype]
    lines = tuple(_lines(program, row) for row in rows)
    return replace(s, prefetch=Prefetch(memory.fetched_bytes // size, lines))


def _lines(program: ir.Program, row: Load) -> CacheLines:
    """The cache lines of a row, a page further on."""
    memory, size = program.machine.memory, BYTES[row.dtype]
    further = (*row.index[:-1], row.index[-1] + memory.page_bytes // size)
    return CacheLines(memory.line_bytes // size, (replace(row, index=further),))


def _rows(program: ir.Program, fetched: frozenset[int], loop: ir.For) -> tuple[Load, ...]:
    """Elements that a loop stores, and reads alike, one after the other; none where a prefetch does not pay.

    Fetching pays where a loop only computes and stores elements of an output, without an exponential or the like, which
    takes longer than the memory.
    """
    store = loop.body[-1] if loop.body else None
    if (
        loop.end
        or loop.chunk
        or loop.role in ("u", "v")
        or loop.lanes > 1
        or has_shifts(program, loop)
    ):
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
