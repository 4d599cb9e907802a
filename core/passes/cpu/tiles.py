"""Make micro-kernels of tiles: held in vector registers, packing what they read, stored where their results belong.

Example:
    in:   for k: for j': c[k,j'] = in0[k,64j+j']
          for i: tile t[6,64] = 0; for k: for i': for j': t[i',j'] += in1[6i+i',k] * c[k,j']
                 for i' < 6: for j' < 64: out[6i+i',64j+j'] = t[i',j']
    out:  unless all lanes are inside: zeros past the end of c, and the loop that fills c
          for i: the tile in registers; that of i = 0 fills c where the loop has not; all go into out[6i,64j], rows n_j
                 apart, where all of their rows and lanes are inside
                 unless t is stored: for i' < 6: for j' < 64: out[6i+i',64j+j'] = t[i',j']

``registers.py`` says how vectors hold a tile, ``Packer`` which copies it fills, ``padded.py`` which are cleared. A
full tile goes from registers into the result where no other value is computed from it first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from ilang.core.calculus.affine import Affine, Within, axis_index, variables_of
from ilang.core.calculus.extent import number, product, scaled
from ilang.core.ir import kernel as ir
from ilang.core.ir import rewriting
from ilang.core.ir.cpu import DeferredPacking, Tile, TileTarget
from ilang.core.ir.ids import BufferId
from ilang.core.ir.scalar import Load
from ilang.core.passes.cpu.padded import ZeroPadder, cleared_buffers
from ilang.core.passes.cpu.registers import guarded, tiles_in_registers, with_tiles
from ilang.core.record import replace


def kernel_to_tiles(program: ir.Program) -> ir.Program:
    """The program whose tiles are micro-kernels, where vector registers can hold them."""
    held = rewriting.with_bodies(program, lambda kernel: tiles_in_registers(program, kernel.body))
    if held is program:
        return program
    cleared, others = zip(*(cleared_buffers(held, each) for each in held.kernels), strict=True)
    apart = set[BufferId]().union(*others)
    buffers = (
        replace(each, padded=each.padded and n not in apart) for n, each in enumerate(held.buffers)
    )
    whole = replace(held, buffers=tuple(buffers))

    def known(s: ir.Statement) -> ir.Statement:
        return guarded(whole, s) if isinstance(s, Tile) else s

    kernels, padder = [], ZeroPadder(whole)
    for kernel, filled in zip(held.kernels, cleared, strict=True):
        body = ir.map_statements(kernel.body, known)
        packed = Packer(whole, body).block(body, frozenset())
        padded = padder.block(packed, filled - apart)
        kernels.append(rewriting.with_body(kernel, _stored(whole, padded)))
    return replace(whole, kernels=tuple(kernels), sizes=tuple(padder.sizes))


def _stored(program: ir.Program, body: ir.Block) -> ir.Block:
    out: list[ir.Statement] = []
    stored: BufferId | None = None  # the tile before a statement that only copies it
    for s, after in zip_longest(body, body[1:]):
        if stored is not None:
            out.append(ir.If((), _at_edges(s), stored=stored))
            stored = None
        elif isinstance(s, Tile):
            target = None if after is None else _target(program, s, after)
            stored = None if target is None else s.buffer
            out.append(s if target is None else replace(s, target=target))
        elif isinstance(s, (ir.For, ir.If)):
            out.append(ir.map_blocks(s, lambda block: _stored(program, block)))
        else:
            out.append(s)
    return rewriting.unless_same(body, out)


def _at_edges(copy: ir.Statement) -> ir.Block:
    """The statement that copies a tile, which is no full one: of two versions that for any extents."""
    if isinstance(copy, ir.If) and copy.otherwise:
        (_, full), (_, other) = rewriting.chain_of(copy.body), rewriting.chain_of(copy.otherwise)
        return copy.otherwise if full == other else (copy,)
    return (copy,)


def _target(program: ir.Program, tile: Tile, after: ir.Statement) -> TileTarget | None:
    """The target of the statement after a tile, if that copies the tile row by row and does nothing else."""
    within: tuple[Within, ...] = ()
    if isinstance(after, ir.If):
        if len(after.body) != 1:
            return None
        within, after = after.within, after.body[0]
    dims = program.buffers[tile.buffer].dims
    loops, (store, *others) = rewriting.chain_of((after,))
    if tile.number is None or len(dims) > 2 or len(loops) != len(dims) or others:
        return None
    copied = Load(
        tile.buffer,
        tuple(axis_index(loop.variable) for loop in loops),
        program.buffers[tile.buffer].dtype,
    )
    if not isinstance(store, ir.Store) or store.value != copied or store.buffer in _read(tile):
        return None
    if tuple(x.size for x in loops) != dims or any(x.chunk is not None for x in loops):
        return None
    lanes, rows = loops[-1], loops[:-1]
    along = [part.coefficient(lanes.variable) for part in store.index]
    if along[-1:] != [1] or any(along[:-1]):
        return None
    stride = number(1)
    for row in rows:
        across = [part.coefficient(row.variable) for part in store.index]
        moved = [d for d, step in enumerate(across) if step]
        if len(moved) != 1 or across[moved[0]] < 1 or moved[0] == len(store.index) - 1:
            return None
        step, inner = across[moved[0]], program.buffers[store.buffer].dims[moved[0] + 1 :]
        stride = product(inner) if step == 1 else scaled(step, product(inner))
    first = {x.variable: Affine(()) for x in loops}
    index = tuple(part.substituted(first) for part in store.index)
    lengths = [program.sizes[loop.size].fixed for loop in loops]
    if None in lengths:
        return None
    inside = tuple(
        each
        for loop, length in zip(loops, lengths, strict=True)
        for each in loop.reaches((length or 0) - 1)
    )
    return TileTarget(store.buffer, index, stride, (*inside, *within))


def _read(tile: Tile) -> set[int]:
    return {buffer for buffer, _ in rewriting.accesses((tile,))}


class Packer:
    """Packing in one kernel, whose blocks are traversed from the outside in.

    Example:
        in:   for k: for j': c[k,j'] = in0[k,64j+j']      out:  the same loop, deferred: not where all lanes are inside;
              for i: tile t of in1[6i+i',k] * c[k,j']           the tile of i = 0 then reads in0 and writes c

    A tile reads whole rows of the copy, and the tiles of all iterations of the loops between the copy and the tile
    read the same rows. So the tile of the first iteration, which reads every element that the others read, can write
    them.
    """

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
        return rewriting.unless_same(body, out)

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
        return loop.reaches((self.program.sizes[loop.size].fixed or 0) - 1)


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
        for part in rewriting.parts_of(s):
            if isinstance(part, Load) and (copied is None or part.buffer == copied.buffer):
                yield part
