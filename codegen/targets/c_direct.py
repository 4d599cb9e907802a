"""Tiles that a result takes as they are: a whole one is stored where it belongs, and not copied there.

in:   tile t[6,64] = ...;  for i' < 6: for j' < 64: out[6i+i',64j+j'] = t[i',j']
out:  the function of the tile writes into out, where all rows and lanes are inside
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ilang.codegen.targets.cfamily import Spelling
from ilang.core.ir.affine import Affine, Within, walks
from ilang.core.ir.kernel import (
    For,
    If,
    Kernel,
    Program,
    Rest,
    Statement,
    Store,
    Tile,
    blocks_of,
    statements_within,
)
from ilang.core.ir.scalar import Load
from ilang.core.passes.rewriting import accesses, step_of, walked_index
from ilang.core.record import record


@record
class Direct:
    """Where a tile goes: ``buffer`` at ``index``, its first element; its rows are ``step`` apart along ``dim``.

    It goes there where its rows are inside, ``rows`` of them up to the end ``rest``, and all that is ``within`` holds.
    """

    buffer: int
    index: tuple[Affine, ...]
    dim: int
    step: int
    rows: int
    rest: Rest | None
    within: tuple[Within, ...]

    def place(self, spelling: Spelling) -> str:
        """The address of the first element."""
        return f"&{spelling.element(self.buffer, self.index)}"

    def stride(self, spelling: Spelling) -> str:
        """How many elements are between rows."""
        sizes = spelling.program.buffers[self.buffer].dims[self.dim + 1 :]
        words = [str(self.step)] if self.step > 1 else []
        return " * ".join([*words, *map(spelling.size, sizes)])

    def condition(self, spelling: Spelling) -> str:
        """When the tile is whole; "1" for always."""
        words = [f"{spelling.rest(self.rest)} >= {self.rows}"] if self.rest is not None else []
        words += [spelling.conditions(self.within)] if self.within else []
        return " && ".join(words) or "1"


def directs(program: Program, kernel: Kernel) -> dict[int, Direct]:
    """The tiles of a kernel, by identity, that the statement after each only copies to where it belongs."""
    found = {}
    for block in _blocks(kernel):
        for s, after in pairwise(block):
            direct = _direct(program, s, after) if isinstance(s, Tile) else None
            if direct is not None:
                found[id(s)] = direct
    return found


def _blocks(kernel: Kernel) -> list[Sequence[Statement]]:
    """Every block of a kernel that a tile may stand in."""
    inside = (s for s in statements_within(kernel.body) if isinstance(s, (For, If)))
    return [kernel.body, *(block for s in inside for block in blocks_of(s))]


def _direct(program: Program, tile: Tile, after: Statement) -> Direct | None:
    """Where a tile goes by the statement after it, if that copies it row by row and does nothing else."""
    within: tuple[Within, ...] = ()
    if isinstance(after, If):
        if len(after.body) != 1:
            return None
        within, after = after.within, after.body[0]
    dims = program.buffers[tile.buffer].dims
    if len(dims) != 2 or not isinstance(after, For) or len(after.body) != 1:
        return None
    rows, lanes = after, after.body[0]
    if not isinstance(lanes, For) or len(lanes.body) != 1 or lanes.rest is not None:
        return None
    store = lanes.body[0]
    copied = Load(
        tile.buffer,
        (walks(rows.variable), walks(lanes.variable)),
        program.buffers[tile.buffer].dtype,
    )
    if not isinstance(store, Store) or store.value != copied or store.buffer in _read(tile):
        return None
    if (rows.size, lanes.size) != dims or any(x.stretch is not None for x in (rows, lanes)):
        return None
    along = [step_of(part, lanes.variable) for part in store.index]
    across = [step_of(part, rows.variable) for part in store.index]
    moved = [d for d, step in enumerate(across) if step]
    if along[-1:] != [1] or any(along[:-1]) or len(moved) != 1 or across[moved[0]] < 1:
        return None
    first = {x.variable: Affine(()) for x in (rows, lanes)}
    height = program.sizes[rows.size].fixed
    if height is None or moved[0] == len(store.index) - 1:
        return None
    index = tuple(walked_index(part, first) for part in store.index)
    return Direct(store.buffer, index, moved[0], across[moved[0]], height, rows.rest, within)


def _read(tile: Tile) -> set[int]:
    """The buffers that a tile is made of."""
    return {buffer for buffer, _ in accesses((tile,))}
