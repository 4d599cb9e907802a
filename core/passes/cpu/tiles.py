"""Make micro-kernels of tiles: held in vector registers, packing what they read, stored where their results belong.

Example:
    in:   for k: for j': c[k,j'] = in0[k,64j+j']
          for i: tile t[6,64] = 0; for k: for i': for j': t[i',j'] += in1[6i+i',k] * c[k,j']
                 for i' < 6: for j' < 64: out[6i+i',64j+j'] = t[i',j']
    out:  unless all lanes are inside: zeros past the end of c, and the loop that fills c
          for i: the tile in registers; that of i = 0 fills c where the loop has not; all go into out[6i,64j], rows n_j
                 apart, where all of their rows and lanes are inside
                 unless t is stored: for i' < 6: for j' < 64: out[6i+i',64j+j'] = t[i',j']

``registers.py`` says how vectors hold a tile, ``packed.py`` which copies it fills, ``padded.py`` which are cleared. A
full tile goes from registers into the result where no other value is computed from it first.
"""

from __future__ import annotations

from itertools import zip_longest

from ilang.core.calculus.affine import Affine, Within, axis_index
from ilang.core.calculus.extent import number, product, scaled
from ilang.core.ir.cpu import Tile, TileTarget
from ilang.core.ir.ids import BufferId
from ilang.core.ir.kernel import (
    Block,
    For,
    If,
    Program,
    Statement,
    Store,
    map_blocks,
    map_statements,
)
from ilang.core.ir.rewriting import accesses, chain_of, unless_same, with_bodies, with_body
from ilang.core.ir.scalar import Load
from ilang.core.passes.cpu.packed import Packer
from ilang.core.passes.cpu.padded import Padding, with_zeros
from ilang.core.passes.cpu.registers import guarded, tiles_in_registers
from ilang.core.record import replace


def kernel_to_tiles(program: Program) -> Program:
    """The program whose tiles are micro-kernels, where vector registers can hold them."""
    held = with_bodies(program, lambda kernel: tiles_in_registers(program, kernel.body))
    if held is program:
        return program
    padding = Padding(held)
    whole = padding.program

    def known(s: Statement) -> Statement:
        return guarded(whole, s) if isinstance(s, Tile) else s

    kernels = []
    for kernel, zeros in zip(held.kernels, padding.zeros, strict=True):
        body = map_statements(kernel.body, known)
        packed = Packer(whole, body).block(body, frozenset())
        kernels.append(with_body(kernel, _stored(whole, with_zeros(packed, zeros))))
    return replace(whole, kernels=tuple(kernels))


def _stored(program: Program, body: Block) -> Block:
    out: list[Statement] = []
    stored: BufferId | None = None  # the tile before a statement that only copies it
    for s, after in zip_longest(body, body[1:]):
        if stored is not None:
            out.append(If((), (s,), stored=stored))
            stored = None
        elif isinstance(s, Tile):
            target = None if after is None else _target(program, s, after)
            stored = None if target is None else s.buffer
            out.append(s if target is None else replace(s, target=target))
        elif isinstance(s, (For, If)):
            out.append(map_blocks(s, lambda block: _stored(program, block)))
        else:
            out.append(s)
    return unless_same(body, out)


def _target(program: Program, tile: Tile, after: Statement) -> TileTarget | None:
    """The target of the statement after a tile, if that copies the tile row by row and does nothing else."""
    within: tuple[Within, ...] = ()
    if isinstance(after, If):
        if len(after.body) != 1:
            return None
        within, after = after.within, after.body[0]
    dims = program.buffers[tile.buffer].dims
    loops, (store, *others) = chain_of((after,))
    if tile.number is None or len(dims) > 2 or len(loops) != len(dims) or others:
        return None
    copied = Load(
        tile.buffer,
        tuple(axis_index(loop.variable) for loop in loops),
        program.buffers[tile.buffer].dtype,
    )
    if not isinstance(store, Store) or store.value != copied or store.buffer in _read(tile):
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
        end.at(loop.variable, (length or 0) - 1)
        for loop, length in zip(loops, lengths, strict=True)
        for end in loop.within
    )
    return TileTarget(store.buffer, index, stride, (*inside, *within))


def _read(tile: Tile) -> set[int]:
    return {buffer for buffer, _ in accesses((tile,))}
