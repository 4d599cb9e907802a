"""Tiles in vector registers: the lanes of a vector, and the part of the tile that is computed at a time.

Example, a tile of 6 by 64 of f32 on a CPU of any length of vectors:
    out:  vectors of 16 lanes; 6 by 64 at a time where registers hold 1536 bytes, 6 by 16 and 6 by 8 where they hold
          less
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ilang.core.dtype import FLOATS
from ilang.core.ir.schedule import MicroTile
from ilang.core.machine import Machine


def vector_lanes(machine: Machine, dtype: str, extent: int) -> int:
    """The lanes of the vectors that a loop of this extent divides into; 1 where it does not."""
    lanes = machine.vector_lanes(dtype) if dtype in FLOATS else 1
    while lanes > 1 and extent % lanes:
        lanes //= 2
    return lanes


def micro_tiles(
    machine: Machine, extents: tuple[int, ...], lanes: int, size: int
) -> Iterator[MicroTile]:
    """The rows and lanes that are computed at a time: as many as registers hold, and divisors of all.

    Few rows that are left at the end of a dimension are computed by themselves.
    """
    vectors: dict[int, int] = {}
    for variant in machine.variants:
        widest = max(variant.vector_bytes, vectors.get(variant.held_bytes, 0))
        vectors[variant.held_bytes] = widest
    for held, vector in vectors.items():
        rows, wide = _fitting(extents, min(vector // size, lanes), held // size)
        matrix = len(extents) == 2
        heights = (rows, -(-2 * rows // 3), -(-rows // 3)) if matrix else (rows,) * 3
        yield MicroTile(held, wide, heights)


def _fitting(extents: tuple[int, ...], unit: int, held: int) -> tuple[int, int]:
    """The rows and the lanes of which some elements are held: the most products per element read.

    One vector of ``unit`` lanes of each row at least; a tile of more than two dimensions has all of its rows.
    """
    rows, lanes = prod(extents[:-1]), extents[-1]
    matrix = len(extents) == 2
    heights = [n for n in range(1, rows + 1) if rows % n == 0] if matrix else [rows]
    fits = [
        (height, n)
        for height in heights
        for n in range(unit, lanes + 1, unit)
        if lanes % n == 0 and height * n <= held
    ]
    best = max(fits, key=lambda fit: (_products(fit[0], fit[1] // unit), fit), default=None)
    return best or (1 if matrix else rows, unit)


def _products(rows: int, vectors: int) -> float:
    """Products of a part of a tile per read: what the lanes read comes from farther away than what the rows do."""
    return rows * vectors / (rows + 2 * vectors)
