"""Contractions that go block of rows by block of rows: rule 7 of the choice.

Where rows of a contraction are reduced before another contraction reads them, as in attention, both go by the same
blocks of rows, and all that is between them stays there.

Example, attention:
    in:   s = tile of rows m, lanes n, loops n m;   out = tile of rows m, lanes d, loops d m;   p made of max s over n
    out:  s and out with loops m n and m d
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.record import replace
from ilang.core.schedule.choose.inlining import Inlining
from ilang.core.schedule.choose.tile import Factors, Tiling
from ilang.core.schedule.choose.tilings import Tilings
from ilang.core.schedule.fuse import mapping

if TYPE_CHECKING:
    from ilang.core.schedule.wide_matrices import Apart


def rows_site(
    tiling: tuple[Tiling, dict[int, int]], pairs: dict[int, int], nest: Nest
) -> int | None:
    """The place inside the loop over blocks of rows, for a reader that has the same one.

    Args:
        tiling: the tiling of a value, and where its axes are in the value.
        pairs: the reader's axis of each axis of the value.
        nest: that of the reader.
    """
    tile, names = tiling
    reader_axes = {axis: pairs[at] for axis, at in names.items() if at in pairs}
    outer = tile.outer[:-1]
    if not tile.is_by_rows or any(loop.axis not in reader_axes for loop in outer):
        return None
    loops = tuple(Loop(reader_axes[loop.axis], loop.part) for loop in outer)
    same = all(nest.factors[reader_axes[x.axis]] == tile.factors[x.axis] for x in outer)
    return len(loops) if same and nest.order[: len(loops)] == loops else None


def batch_site(tiling: tuple[Tiling, dict[int, int]], pairs: dict[int, int], nest: Nest) -> int:
    """The place inside the loops over batches, those around rows and lanes, that a reader has outermost, too.

    Nothing splits these loops, neither the tiling nor the reader.
    """
    tile, names = tiling
    reader_axes = {axis: pairs[at] for axis, at in names.items() if at in pairs}
    count = 0
    for loop, reader_loop in zip(tile.outer, nest.order, strict=False):
        is_split = tile.factors[loop.axis] or nest.factors[reader_loop.axis]
        if is_split or loop.axis in (tile.rows, tile.lanes):
            break
        if reader_axes.get(loop.axis) != reader_loop.axis:
            break
        count += 1
    return count


def by_rows(shaped: Shaped, inlining: Inlining, tilings: Tilings) -> Tilings:
    """The tilings with the contractions that meet in rows in blocks of rows.

    Args:
        shaped: the program.
        inlining: who reads each value.
        tilings: of the program.
    """
    for value in range(len(shaped.nodes)):
        for producer, pairs in _reached(shaped, tilings, value):
            tilings = _in_shared_blocks(shaped, inlining, tilings, value, producer, pairs)
    return tilings


def kept_rows(shaped: Shaped, inlining: Inlining, tilings: Tilings) -> set[int]:
    """The values of known extents of which blocks of rows are kept for several readers, and nothing is stored."""
    return {
        value
        for value, reads in enumerate(inlining.all_reads)
        if 1 < len(reads) and value not in inlining.kept and tilings.is_by_rows(value)
        if all(shaped.sizes[size].fixed is not None for size in shaped.tensors[value].dims)
    }


def in_phases(apart: Apart, tilings: Tilings) -> Tilings:
    """The tilings with the contractions of every kernel that goes by blocks of rows in blocks of as many rows.

    Args:
        apart: what belongs to these kernels.
        tilings: of the program.
    """
    tiles = list(tilings.tiles)
    for phase in set(apart.phases.values()):
        phase_tiles = {
            value: tile.by_rows()
            for value, each in apart.phases.items()
            if each == phase and (tile := tiles[value]) is not None and not tile.windows
        }
        least = min((tile.factors[tile.rows] for tile in phase_tiles.values()), default=())
        for value, tile in phase_tiles.items():
            factors = list(tile.factors)
            factors[tile.rows] = least
            tiles[value] = replace(tile, factors=tuple(factors))
    return replace(tilings, tiles=tuple(tiles))


def copied_rows(
    apart: Apart, tilings: Tilings, value: int
) -> tuple[Factors, tuple[Loop, ...]] | None:
    """The splits and loops of a copy of what a kernel has reduced of its rows: those of its blocks of rows."""
    place = {label: axis for axis, label in enumerate(apart.axes[value])}
    for other, phase in apart.phases.items():
        tile = tilings.tiles[other]
        if phase != apart.phases[value] or tile is None:
            continue
        labels = apart.axes[other]
        rows = place.get(labels[tile.rows])
        if rows is None:
            return None
        around = tile.outer[:-1]
        outer = [Loop(place[labels[x.axis]]) for x in around if labels[x.axis] in place]
        factors: list[tuple[int, ...]] = [()] * len(apart.axes[value])
        factors[rows] = tile.factors[tile.rows]
        axes = (Loop(axis) for axis in range(len(factors)) if Loop(axis) not in outer)
        return tuple(factors), (*outer, Loop(rows, 1), *axes)
    return None


def _in_shared_blocks(
    shaped: Shaped,
    inlining: Inlining,
    tilings: Tilings,
    value: int,
    producer: int,
    pairs: dict[int, int],
) -> Tilings:
    """The tilings with a contraction and one that it is computed from going by the same blocks of rows, if they can.

    Args:
        shaped: the program.
        inlining: who reads each value.
        tilings: of the program.
        value: the contraction.
        producer: the value that the other contraction gives, or pointwise work on it.
        pairs: the contraction's axis of each axis of the producer.
    """
    tile, of_producer, end = tilings.tiles[value], tilings.found(producer), tilings.ends[producer]
    if tile is None or of_producer is None or end is None:
        return tilings
    other, places = of_producer
    if other.windows:
        return tilings
    if not _is_reduced(shaped, inlining, tilings, producer, places.get(other.lanes)):
        return tilings
    names = {axis: pairs[at] for axis, at in places.items() if at in pairs}
    tile, other = tile.by_rows(), other.by_rows()
    if not _have_equal_blocks(tile, other, names):
        return tilings
    tiles = list(tilings.tiles)
    tiles[value], tiles[end[0]] = tile, other
    return replace(tilings, tiles=tuple(tiles))


def _is_reduced(
    shaped: Shaped, inlining: Inlining, tilings: Tilings, value: int, axis: int | None
) -> bool:
    """Whether an assignment that reads a value reduces one of its axes, no contraction, and another reads it too."""
    readers = inlining.all_reads[value]
    if len(readers) < 2 or value in inlining.kept or axis is None:
        return False
    producer = shaped.assignment(value)
    for reader, read in readers:
        node = shaped.assignment(reader)
        is_tiled = tilings.tiles[reader] is not None
        if not is_tiled and mapping(producer, read).get(axis) in node.reduced_axes():
            return True
    return False


def _reached(shaped: Shaped, tilings: Tilings, value: int) -> list[tuple[int, dict[int, int]]]:
    """The values that a contraction is made of, each with its axes in the contraction's, up to other contractions."""
    tile, node = tilings.tiles[value], shaped.nodes[value]
    if tile is None or tile.windows or not isinstance(node, Assignment):
        return []
    reached: dict[int, dict[int, int]] = {}
    todo = [(value, {axis: axis for axis in range(len(node.axes))})]
    while todo:
        above, pairs = todo.pop()
        reader = shaped.assignment(above)
        for read in dict.fromkeys(reader.reads):
            producer = shaped.nodes[read.value]
            if not isinstance(producer, Assignment):
                continue
            inside = mapping(producer, read)
            names = {axis_below: pairs[at] for axis_below, at in inside.items() if at in pairs}
            if len(names) > len(reached.get(read.value, {})):
                reached[read.value] = names
                if tilings.tiles[read.value] is None:
                    todo.append((read.value, names))
    return list(reached.items())


def _have_equal_blocks(tile: Tiling, producer: Tiling, names: dict[int, int]) -> bool:
    """Whether a contraction sums over the lanes of the one that it reads, and both go by the same blocks of rows.

    ``names`` has the axis of the first one for each axis of the second.
    """
    lanes = names.get(producer.lanes)
    if lanes in (None, tile.rows, tile.lanes) or lanes not in {loop.axis for loop in tile.inner}:
        return False
    loops = [names.get(loop.axis) for loop in producer.outer[:-1]]
    same_loops = loops == [loop.axis for loop in tile.outer[:-1]]
    return same_loops and tile.factors[tile.rows] == producer.factors[producer.rows]
