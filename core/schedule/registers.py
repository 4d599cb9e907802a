"""Tiles in vector registers: the lanes of a vector, and the part of the tile that is computed at a time.

Example, a tile of 6 by 64 of f32 on a CPU of any length of vectors:
    out:  vectors of 16 lanes; 6 by 64 at a time where registers hold 1536 bytes, 6 by 16 and 6 by 8 where they hold
          less
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod

from ilang.core.dtype import FLOATS
from ilang.core.ir.schedule import MicroTile
from ilang.core.machine import Machine


def vector_lanes(machine: Machine, dtype: str, extent: int, may_overlap: bool = True) -> int:
    """The lanes of the vectors that rows of this extent have: of two that overlap, where they do not divide it.

    Vectors that are added to what is in memory do not overlap: elements of both would be added twice.
    """
    longest = lanes = machine.vector_lanes(dtype) if dtype in FLOATS else 1
    while longest > extent:
        longest //= 2
    while lanes > 1 and extent % lanes:
        lanes //= 2
    return max(longest, 1) if may_overlap and machine.tiles.short_lanes <= longest else lanes


def balanced(extent: int | None, rows: int) -> int:
    """The rows of a tile that may have so many: as many in each as there can be."""
    return -(-extent // -(-extent // rows)) if extent else rows


def micro_tiles(
    machine: Machine, extents: tuple[int, ...], lanes: int, size: int
) -> Iterator[MicroTile]:
    """The rows and lanes that are computed at a time: as many as registers hold, and divisors of all.

    Few rows that are left at the end of a dimension are computed by themselves.
    """
    for held, vector in _vectors(machine).items():
        yield _micro_tile(extents, min(vector // size, lanes), held, size)


def wide_parts(
    machine: Machine, extents: tuple[int, int], size: int
) -> Iterator[tuple[int, MicroTile]]:
    """The lanes of a vector and what is computed at a time, for instruction sets with many registers.

    Elements have so many bytes.
    """
    vectors = _vectors(machine)
    for held, vector in vectors.items():
        if min(vectors) < held or len(vectors) == 1:
            yield vector // size, _micro_tile(extents, vector // size, held, size)


def _vectors(machine: Machine) -> dict[int, int]:
    """The bytes of the longest vectors that instruction sets have, by the bytes of a tile that their registers hold."""
    vectors: dict[int, int] = {}
    for variant in machine.variants:
        widest = max(variant.vector_bytes, vectors.get(variant.held_bytes, 0))
        vectors[variant.held_bytes] = widest
    return vectors


@cache
def _micro_tile(extents: tuple[int, ...], unit: int, held: int, size: int) -> MicroTile:
    """The rows and lanes that so many bytes of registers hold."""
    rows, wide = _fitting(extents, unit, held // size)
    matrix = len(extents) == 2
    heights = (rows, -(-2 * rows // 3), -(-rows // 3)) if matrix else (rows,) * 3
    return MicroTile(held, wide, heights)


def _fitting(extents: tuple[int, ...], unit: int, held: int) -> tuple[int, int]:
    """The rows and the lanes of which some elements are held: the most products per element read.

    One vector of ``unit`` lanes of each row at least; a tile of more than two dimensions has all of its rows.
    """
    rows, lanes = prod(extents[:-1]), -(-extents[-1] // unit) * unit
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
