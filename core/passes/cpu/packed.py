"""Fuse packing into the first micro-kernel: the first tile that reads a packed copy also writes it.

Example:
    in:   for k: for j': c[k,j'] = in0[k,64j+j']      out:  the same loop, deferred: not where all lanes are inside;
          for i: tile t of in1[6i+i',k] * c[k,j']           the tile of i = 0 then reads in0 and writes c

A tile reads whole rows of the copy, and the tiles of all iterations of the loops between the copy and the tile read the
same rows. So the tile of the first iteration, which reads every element that the others read, can write them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ilang.core.calculus.affine import Within, axis_index, variables_of
from ilang.core.ir import kernel as ir
from ilang.core.ir.cpu import DeferredPacking, Tile
from ilang.core.ir.ids import BufferId
from ilang.core.ir.rewriting import parts_of, unless_same
from ilang.core.ir.scalar import Load
from ilang.core.passes.cpu.registers import with_tiles
from ilang.core.record import replace


class Packer:
    """Packing in one kernel, whose blocks are traversed from the outside in."""

    def __init__(self, program: ir.Program, body: ir.Block) -> None:
        self.program = program
        self.written = Counter(s.buffer for s in ir.every(body, ir.Store))
        self.read = Counter(load.buffer for load in _loads(body))

    def block(self, body: ir.Block, opened: frozenset[int]) -> ir.Block:
        """A block inside ``opened`` loops, its copies marked that a tile fills."""
        filled: dict[BufferId, Tile] = {}  # by the buffer of the tile
        deferred: dict[int, DeferredPacking] = {}  # by the place of the loop in the block
        alone = any(isinstance(s, ir.For) and s.parallel for s in body)
        readers: Readers | None = None
        for n, s in enumerate(body):
            copied = _copied(s)
            if copied is None or not isinstance(s, ir.For):
                continue
            readers = _tile_readers(body) if readers is None else readers
            for at, loops, tile in readers.get(copied.buffer, ()):
                if at <= n or tile.buffer in filled:
                    continue
                filling = self._filled(copied, loops, tile, opened)
                if filling is not None:
                    filled[tile.buffer] = filling
                    deferred[n] = DeferredPacking(copied.buffer, self._whole_lanes(tile), alone)
                    break
        out = list(with_tiles(body, filled))
        for n, each in deferred.items():
            out[n] = replace(out[n], deferred=each)
        for n, s in enumerate(out):
            if isinstance(s, ir.For):
                inside = self.block(s.body, opened | {s.variable})
                out[n] = s if inside is s.body else replace(s, body=inside)
            elif isinstance(s, ir.If):
                out[n] = ir.map_blocks(s, lambda block: self.block(block, opened))
        return unless_same(body, out)

    def _filled(
        self, copied: ir.Store, loops: Sequence[ir.For], tile: Tile, opened: frozenset[int]
    ) -> Tile | None:
        """A tile inside loops that fills a copy, if that is possible."""
        if tile.number is None or tile.guards:
            return None
        fill = self._fill(copied, tile, opened)
        if fill is None:
            return None
        return replace(tile, fill=fill, first=tuple(x.variable for x in loops))

    def _fill(self, copied: ir.Store, tile: Tile, opened: frozenset[int]) -> ir.Store | None:
        """The store of a tile in a copy while it reads the source of the copy."""
        source = copied.value
        assert isinstance(source, Load)
        inside = [part for part in _loads((tile,)) if part.buffer == copied.buffer]
        if (
            self.read[copied.buffer] != len(inside)
            or len({part.index for part in _loads(tile.body, copied)}) != 1
        ):
            return None
        if self.written[copied.buffer] != 1 or source.buffer in self.written:
            return None
        lane = tile.loops()[-1].variable
        index = next(_loads(tile.body, copied)).index
        variables = {loop.variable for loop in (*tile.blocks, *tile.core())} | {lane} | opened
        if not variables_of(index) <= {*variables}:
            return None
        instead = {
            variable: at
            for part, at in zip(copied.index, index, strict=True)
            for variable in part.variables()
        }
        taken = tuple(part.substituted(instead) for part in source.index)
        for at in (index, taken):
            if not at or at[-1].coefficient(lane) != 1 or any(x.coefficient(lane) for x in at[:-1]):
                return None
        return ir.Store(copied.buffer, index, replace(source, index=taken))

    def _whole_lanes(self, tile: Tile) -> tuple[Within, ...]:
        """The conditions that all lanes of a micro-kernel are inside."""
        loop = tile.loops()[-1]
        last = (self.program.sizes[loop.size].fixed or 0) - 1
        return tuple(end.at(loop.variable, last) for end in loop.within)


def _copied(s: ir.Statement) -> ir.Store | None:
    """The store of loops that only copy, each along a dimension of a private buffer; None for other statements."""
    variables = []
    while isinstance(s, ir.For) and len(s.body) == 1 and s.chunk is None and s.lanes == 1:
        variables.append(s.variable)
        s = s.body[0]
    if not isinstance(s, ir.Store) or not isinstance(s.value, Load) or s.value.dtype == "bool":
        return None
    if any(part.looked for part in s.value.index):
        return None
    return s if [axis_index(v) for v in variables] == list(s.index) else None


Readers = dict[int, list[tuple[int, tuple[ir.For, ...], Tile]]]
"""The place in a block where a tile reads each buffer: the statement, the loops around the first tile in it, the
tile."""


def _tile_readers(body: Sequence[ir.Statement]) -> Readers:
    readers: Readers = {}
    for n, s in enumerate(body):
        block_readers: dict[int, tuple[int, tuple[ir.For, ...], Tile]] = {}
        stack: list[tuple[ir.Statement, tuple[ir.For, ...]]] = [(s, ())]
        while stack:
            inner, around = stack.pop()
            if isinstance(inner, Tile) and around:
                for load in _loads(inner.body):
                    block_readers.setdefault(load.buffer, (n, around, inner))
            elif isinstance(inner, ir.For) and inner.chunk is None and inner.lanes == 1:
                stack += [(below, (*around, inner)) for below in reversed(inner.body)]
        for buffer, reader in block_readers.items():
            readers.setdefault(buffer, []).append(reader)
    return readers


def _loads(body: Sequence[ir.Statement], copied: ir.Store | None = None) -> Iterator[Load]:
    for s in ir.statements_within(body):
        for part in parts_of(s):
            if isinstance(part, Load) and (copied is None or part.buffer == copied.buffer):
                yield part
