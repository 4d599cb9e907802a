"""Pad packed panels with zeros: what a tile computes past the end of a row must not depend on what memory held.

Example, of 100 columns in strips of 64:
    in:   for j: { for k: for j' in 0..min(64, 100 - 64j): c[k,j'] = in1[k,64j+j']
                   for i: tile t of c[k,j'] }
    out:  for j: { if not 64j+63 < 100:
                     if 64j+32 < 100: for k: for j' in 0..32: c[k,j'+32] = 0
                     else: for k: for j' in 0..32: c[k,j'] = 0
                   for k: for j' in 0..min(64, 100 - 64j): c[k,j'] = in1[k,64j+j']
                   for i: tile t of c[k,j'] }

A tile in registers computes all lanes of its vectors, also lanes past the end of a dimension, if the buffer that it
reads has room for them. The results of these lanes are not used, but stale memory may hold
subnormal numbers, and arithmetic on these takes a hundred times as long on many processors. Of a row that ends early,
only the half in which it ends is cleared, since tiles skip a half without elements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from ilang.core.calculus.affine import axis_index
from ilang.core.calculus.extent import size as size_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import Tile, Transpose
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import chain_of, reads_of
from ilang.core.ir.scalar import Constant
from ilang.core.passes.cpu.registers import reads_past
from ilang.core.passes.fixed_sizes import FixedSizes


def cleared_buffers(program: ir.Program, kernel: ir.Kernel) -> tuple[set[BufferId], set[BufferId]]:
    """The buffers that tiles of a kernel read past the ends of rows: those that loops along rows fill, and others."""
    held = (tile for tile in ir.every(kernel.body, Tile) if tile.number is not None)
    read = {load.buffer for tile in held if reads_past(program, tile) for load in tile.along()}
    others = {s.buffer for s in _apart(program, kernel.body, read)} if read else set()
    return read - others, others


def _apart(
    program: ir.Program, body: ir.Block, buffers: Collection[BufferId]
) -> Iterator[ir.Store]:
    """The stores of a block to buffers whose rows no loop fills there."""
    for s in body:
        if isinstance(s, ir.Store):
            yield from (s,) if s.buffer in buffers else ()
        elif isinstance(s, ir.For):
            filling = _filling(program, s, buffers)
            yield from (x for x in _apart(program, s.body, buffers) if x not in filling)
        elif isinstance(s, (ir.If, Transpose)):
            blocks = ((s.loops,),) if isinstance(s, Transpose) else ir.blocks_of(s)
            for block in blocks:
                yield from _apart(program, block, buffers)


def _filling(
    program: ir.Program, loop: ir.For, buffers: Collection[BufferId]
) -> tuple[ir.Store, ...]:
    """The stores along whose rows a loop goes, and fills them."""
    lane = axis_index(loop.variable)
    stores = [
        s
        for s in ir.every(loop.body, ir.Store)
        if s.buffer in buffers
        and s.index[-1] == lane
        and program.buffers[s.buffer].dims[-1] == loop.size
    ]
    if not stores or loop.chunk is not None:
        return ()
    if any(loop.variable in inner.ends() for inner in ir.every(loop.body, ir.For)):
        return ()
    read = {buffer for s in ir.statements_within(loop.body) for buffer, _ in reads_of(s)}
    return tuple(s for s in stores if s.buffer not in read)


class ZeroPadder:
    """The zeros of a program, whose sizes grow by halves of rows."""

    def __init__(self, program: ir.Program) -> None:
        """For a program before any of its rows is cleared."""
        self.program = program
        self.sizes = list(program.sizes)
        self.fixed = FixedSizes(self.sizes)

    def block(
        self, body: ir.Block, buffers: Collection[BufferId], known: Sequence[ir.For] = ()
    ) -> ir.Block:
        """A block whose buffers are cleared before they are filled, but for what ``known`` loops fill."""
        if not buffers:
            return body
        out: list[ir.Statement] = []
        for s in body:
            loop = s.loops if isinstance(s, Transpose) else s
            filling = known
            for around, lanes in _nests(loop) if isinstance(loop, ir.For) else ():
                if not any(lanes is each for each in known):
                    stores = _filling(self.program, lanes, buffers)
                    filling = (*filling, lanes) if stores else filling
                    for path, store in _paths(lanes.body):
                        if store in stores:
                            out += self._zeros(lanes, store, (*around, *path))
            inside = partial(self.block, buffers=buffers, known=filling)
            out.append(ir.map_blocks(s, inside) if isinstance(s, (ir.For, ir.If)) else s)
        return tuple(out)

    def _zeros(
        self, lanes: ir.For, store: ir.Store, around: Sequence[ir.For | ir.If]
    ) -> Iterator[ir.Statement]:
        """The loops that clear what a store fills, lanes innermost; none where it fills whole rows."""
        extent = self.program.sizes[lanes.size].fixed
        loops = [s for s in around if isinstance(s, ir.For)]
        within = [each for s in around if isinstance(s, ir.If) for each in s.within]
        asks = any(lanes.variable in each.index.axes() for each in within)

        def nest(size: int, first: int) -> ir.Statement:
            index = (*store.index[:-1], store.index[-1] + first)
            zero = Constant(0, self.program.buffers[store.buffer].dtype)
            body: ir.Block = (ir.Store(store.buffer, index, zero),)
            body = (ir.For(lanes.variable, size_of(size), body),)
            for loop in reversed(loops):
                body = (ir.For(loop.variable, loop.end, body, loop.begin),)
            return body[0]

        if asks or (lanes.within and extent is None):
            yield nest(lanes.size, 0)
        elif extent is not None and lanes.within:
            cleared = nest(lanes.size, 0)
            if extent % (2 * self.program.machine.vector_lanes("f32")) == 0:
                # A tile reads one of the longest vectors at a time, or divisors of its row, half past it at most.
                middle = extent // 2
                half = self.fixed.number(middle)
                second, first = (nest(half, at) for at in (middle, 0))
                cleared = ir.If(lanes.reaches(middle), (second,), (first,))
            yield ir.If(lanes.reaches(extent - 1), (), (cleared,))


def _nests(loop: ir.For) -> Iterator[tuple[list[ir.For], ir.For]]:
    """The loops of a nest that end where none around them in it says, and those."""
    chain, _ = chain_of((loop,))
    for n, lanes in enumerate(chain):
        if lanes.ends().isdisjoint(outer.variable for outer in chain[:n]):
            yield chain[:n], lanes


def _paths(body: ir.Block) -> Iterator[tuple[tuple[ir.For | ir.If, ...], ir.Store]]:
    """The stores of a block, and the loops and conditions around each."""
    for s in body:
        if isinstance(s, ir.Store):
            yield (), s
        elif isinstance(s, (ir.For, ir.If)):
            for block in ir.blocks_of(s):
                yield from (((s, *around), store) for around, store in _paths(block))
