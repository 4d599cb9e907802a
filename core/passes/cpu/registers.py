"""Say which tiles vector registers hold, and what has to hold for that.

Example:
    in:   tile t[6,64] = 0; for k: for i': for j': t[i',j'] += in0[6i+i',k] * c[k,j']
    out:  the same as a micro-kernel: 16 lanes or fewer along c[k,j'], guarded by nothing where c is padded

If a tile computes something that has no vector instruction, it is no micro-kernel, and is computed element by element.
"""

from __future__ import annotations

from math import prod

from ilang.core.calculus.affine import row_step
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.rewriting import chain_of
from ilang.core.ir.scalar import Apply, Constant, Load, Local, scalars_within
from ilang.core.record import replace

SUPPORTED = frozenset({"add", "sub", "mul", "div", "neg", "recip", "square", "max", "min"})
"""Primitives that vectors compute."""


def tiles_in_registers(program: ir.Program, body: ir.Block) -> ir.Block:
    """The body of a kernel whose tiles are micro-kernels where they can be."""
    described = {
        tile.buffer: _described(program, tile, number)
        for number, tile in enumerate(ir.every(body, Tile))
    }
    return with_tiles(body, described)


def with_tiles(body: ir.Block, tiles: dict[BufferId, Tile]) -> ir.Block:
    """A block with other tiles in place of those for the same buffers."""
    if not tiles:
        return body
    return ir.map_statements(body, lambda s: tiles.get(s.buffer, s) if isinstance(s, Tile) else s)


def _described(program: ir.Program, tile: Tile, number: int) -> Tile:
    """A tile as a micro-kernel; itself where vector registers cannot hold it."""
    chain, body = chain_of(tile.body)
    dtype = program.buffers[tile.buffer].dtype
    short = len(chain) < len(program.buffers[tile.buffer].dims)
    if tile.vector < 2 or short or any(x.lanes > 1 or x.parallel for x in chain):
        return tile
    lane = chain[-1].variable
    if not all(_in_vectors(s, tile.buffer, dtype, lane) for s in body):
        return tile
    if tile.partial is not None and _has_sums(program, tile):
        tile = replace(tile, partial=replace(tile.partial, apart=True))
    body = ir.map_statements(tile.body, _left_a_loop)
    return replace(tile, number=number, body=body)


def _left_a_loop(s: ir.Statement) -> ir.Statement:
    """An innermost loop of what stands beside registers, not written out.

    Where GCC 12 writes out the last lanes and all rows and makes vectors of the loop around, it reads a vector for one
    element of a row: past the end of the array.
    """
    if not isinstance(s, ir.For) or any(isinstance(inner, ir.For) for inner in s.body):
        return s
    return replace(s, manner=ir.Unrolled(1))


def _has_sums(program: ir.Program, tile: Tile) -> bool:
    """Whether registers hold the sum of partial sums, too."""
    buffer = program.buffers[tile.buffer]
    elements = prod(program.sizes[n].fixed or 0 for n in buffer.dims)
    return program.machine.holds_sums(elements, buffer.dtype)


def _in_vectors(s: ir.Statement, tile: BufferId, dtype: str, lane: VariableId) -> bool:
    """Whether vectors can do what a statement of an iteration of a tile does."""
    if not isinstance(s, (ir.Define, ir.Store)):
        return False
    if s.mutable if isinstance(s, ir.Define) else s.buffer != tile:
        return False
    for part in scalars_within(s.value):
        if not isinstance(part, (Apply, Load, Local, Constant)) or part.dtype != dtype:
            return False
        if isinstance(part, Apply) and part.primitive not in SUPPORTED:
            return False
        if isinstance(part, Load):
            step = row_step(part.index, lane)
            if step not in (0, 1) or any(index.looked for index in part.index):
                return False
    return True


def reads_past(program: ir.Program, tile: Tile) -> bool:
    """Whether lanes of a micro-kernel are read past the ends of rows: where they end early, and all have room."""
    padded = all(program.buffers[load.buffer].padded for load in tile.along())
    return padded and bool(tile.loops()[-1].within)


def guarded(program: ir.Program, tile: Tile) -> Tile:
    """A tile with what has to hold, given which buffers are padded; itself where it is no micro-kernel.

    There is a row, and no lane reads past the end of memory. The parts of an axis that is split once start inside it.
    """
    if tile.number is None:
        return tile
    padded = all(program.buffers[load.buffer].padded for load in tile.along())
    guards = []
    for loop in tile.loops():
        extent = program.sizes[loop.size].fixed or 0
        for end in loop.within:
            index, step = end.limit(loop.variable)
            if loop is tile.loops()[-1] and not padded:
                guards.append(end.at(loop.variable, extent - 1))
            elif [-c for c, _ in index.steps()] != [extent] or step != 1:
                guards.append(end.at(loop.variable, 0))
    return replace(tile, guards=tuple(guards))
