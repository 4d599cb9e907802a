"""Rows of scores that a block shares: as long as threads need to meet in few banks, and no longer."""

from __future__ import annotations

from math import prod

from ilang.core.machine import GPU
from ilang.core.pipeline import graph_of, infer, lower, text_component

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
