"""Rows of what a block shares: as long as threads need to meet in few banks, and no longer."""

from __future__ import annotations

from math import prod

import pytest

from ilang.core.calculus.affine import Affine, axis_index
from ilang.core.calculus.extent import size
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.ids import BufferId, VariableId
from ilang.core.ir.kernel import Buffer, For, Store
from ilang.core.ir.scalar import Load
from ilang.core.ir.schedule import Role
from ilang.core.ir.shaped import Size
from ilang.core.machine import GPU
from ilang.core.passes.gpu.banks import rows_of
from ilang.core.pipeline import graph_of, infer, lower, text_component
from ilang.core.record import replace

ATTENTION = (
    "ik*jk~ijk >> +ijk~ij >> (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij"
    " >> ij*jd~ijd >> +ijd~id"
)


def shared_tiles(text: str) -> list[list[int]]:
    """The extents of what a block shares in more than two dimensions, but for copies of factors."""
    program = lower(infer(graph_of(text_component(text), "f")), GPU)
    shared = [b for b in program.buffers if b.space == "shared" and len(b.dims) > 2]
    tiles = [b for b in shared if not b.name.endswith("_copy")]
    return [[program.sizes[d].fixed or 0 for d in tile.dims] for tile in tiles]


def test_threads_that_walk_rows_of_scores_have_banks_of_their_own() -> None:
    tiles = shared_tiles(ATTENTION)
    assert tiles
    for tile in tiles:
        assert tile[:2] == [16, 4]
        row = prod(tile[2:])
        assert 32 <= row <= 52
        assert len({n * row % 32 for n in range(32)}) == 32


@pytest.mark.parametrize(
    ("extents", "roles", "rows"),
    [
        ((4, 8, 8), ("", "", ""), [4, 8, 8]),  # one after the other
        ((32, 1, 32), ("t", "", ""), [32, 1, 33]),  # a row each
        ((32, 1, 31), ("t", "", ""), [32, 1, 31]),
        ((1, 32, 32), ("", "ty", "tx"), [1, 32, 32]),
        ((1, 32, 32), ("", "tx", "ty"), [1, 32, 33]),
    ],
)
def test_rows_are_longer_where_threads_would_meet(
    extents: tuple[int, ...], roles: tuple[Role, ...], rows: list[int]
) -> None:
    """Of a buffer that threads walk along its loops with a role, or all of them, and each alone along the others."""
    program = lower(infer(graph_of(text_component("-ijk~ijk"), "f")), GPU)
    sizes = (*program.sizes, *(Size(str(n), n, ()) for n in extents))
    first = len(program.sizes)
    dims = tuple(range(first, first + len(extents)))
    buffer = Buffer("tile", "f32", dims, "temporary", private=True)
    number = BufferId(len(program.buffers))
    program = replace(program, sizes=sizes, buffers=(*program.buffers, buffer))
    index: tuple[Affine, ...] = tuple(axis_index(n) for n in range(len(extents)))
    body: tuple[Store | For, ...] = (Store(number, index, Load(number, index, "f32")),)
    shared = [n for n in range(len(extents)) if not any(roles) or roles[n]]
    for n in reversed(range(len(extents))):
        if n not in shared:
            body = (For(VariableId(n), size(first + n), body),)
    loops = tuple(For(VariableId(n), size(first + n), (), role=roles[n]) for n in shared)
    spread = ThreadLoop(loops, "threads", 256, body)
    assert rows_of(program, [spread], number, extents) == rows
