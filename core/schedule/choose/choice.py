"""The schedule of everything unscheduled: a nest per assignment, and which values share a kernel.

Example:
    in:   >ij~i & <ij~i, nothing written
    out:  || i j and || i j, one kernel, which shares i
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Nest
from ilang.core.ir.shaped import Assignment, Shaped
from ilang.core.machine import Machine
from ilang.core.schedule.choose.accesses import Accesses, accesses_of
from ilang.core.schedule.choose.inlining import Inlining, inlining
from ilang.core.schedule.choose.known import Analysis
from ilang.core.schedule.choose.nests import Choice, choose_nests
from ilang.core.schedule.choose.short_rows import short_rows
from ilang.core.schedule.choose.tile import Tiling, tiling
from ilang.core.schedule.choose.tilings import Tilings, crossed, tilings, turned
from ilang.core.schedule.fuse import Provenance
from ilang.core.schedule.symmetric import halved
from ilang.core.transform.scans import scans_of

if TYPE_CHECKING:
    from ilang.core.schedule.wide_matrices import Apart


def choose(
    shaped: Shaped,
    written: Sequence[Nest | None],
    provenance: Provenance,
    extents: Extents,
    machine: Machine,
    apart: Apart | None = None,
) -> Choice:
    """A nest per assignment: the written one, with the compiler's sites where its order is not; else a chosen one.

    Args:
        shaped: the program.
        written: the nests that a person wrote, None for every other node.
        provenance: of the program.
        extents: of the program.
        machine: what the loops are for.
        apart: what belongs to kernels that go by blocks of rows, where the program is one with matrices of their own.

    Raises:
        ScheduleError: E0320 to E0322 (a producer without a schedule cannot take that of its reader).
    """
    if machine.kind == "gpu":
        from ilang.core.schedule.choose.gpu import choose_for_gpu

        return choose_for_gpu(shaped, written, provenance, extents, machine, apart)
    return choose_nests(analysed(shaped, written, provenance, extents, machine, apart))


def analysed(
    shaped: Shaped,
    written: Sequence[Nest | None],
    provenance: Provenance,
    extents: Extents,
    machine: Machine,
    apart: Apart | None = None,
) -> Analysis:
    """The analysis of a program before any nest is chosen, each step from the results of those before."""
    scans = scans_of(shaped)
    stored = {*scans, *(() if apart is None else apart.copies)}
    readers = inlining(shaped, stored)
    accesses = accesses_of(shaped, readers, machine)
    kept = {id(shaped.nodes[value]) for value in scans}

    def rule(node: Assignment, accesses: Accesses, priced: bool = False) -> Tiling | None:
        return None if id(node) in kept else tiling(node, accesses, extents, machine, priced)

    tiles = _tiles(shaped, written, readers, accesses, rule, apart)
    whole = crossed(shaped, readers, tiles) | halved(shaped, readers, tiles, machine)
    whole |= turned(shaped, readers, tiles, extents, machine)
    if apart is None and whole:
        readers = inlining(shaped, stored | whole)  # what is stored is copied square by square
        tiles = _tiles(shaped, written, readers, accesses, rule, apart)
    rows, saved = short_rows(shaped, readers, accesses, tiles, extents, machine)
    if apart is None and any(tile is not None and tile.is_by_rows for tile in tiles.tiles):
        from ilang.core.schedule.choose.row_blocks import kept_rows

        wide = kept_rows(shaped, readers, tiles)
        if wide:  # lanes across all rows may save more than their lines cost
            other = inlining(shaped, stored | whole | wide)
            all_tiles = _tiles(shaped, written, other, accesses, rule, apart)
            all_rows, more = short_rows(shaped, other, accesses, all_tiles, extents, machine)
            if saved + _cycles_of_storing(shaped, wide, extents, machine) < more:
                readers, tiles, rows = other, all_tiles, all_rows
    return Analysis(
        shaped, written, provenance, machine, readers, accesses, tiles, extents, rows, apart, scans
    )


def _cycles_of_storing(
    shaped: Shaped, values: Collection[int], extents: Extents, machine: Machine
) -> float:
    """The cycles in which values are stored and loaded by two readers, and their lines come and go for that."""
    core, cycles = machine.core, 0.0
    for tensor in (shaped.tensors[value] for value in values):
        size = BYTES[tensor.dtype] * prod(map(extents.usual, tensor.dims))
        if core is not None:
            each = core.stored + 2 / core.loads + 3 * core.cycles_of_line(size)
            cycles += size / machine.vector_bytes() * each
    return cycles


def _tiles(
    shaped: Shaped,
    written: Sequence[Nest | None],
    readers: Inlining,
    accesses: Sequence[Accesses],
    rule: Callable[..., Tiling | None],
    apart: Apart | None,
) -> Tilings:
    """The tilings of a program: those of rules, and of prices where extents are known and nothing goes by rows."""
    tiles = tilings(shaped, written, readers, accesses, rule)
    if any(tiles.tiles):
        from ilang.core.schedule.choose.row_blocks import by_rows, in_phases

        tiles = by_rows(shaped, readers, tiles)
        if apart is not None:
            return in_phases(apart, tiles)
    is_by_rows = any(tile is not None and tile.is_by_rows for tile in tiles.tiles)
    if is_by_rows or apart is not None or not any(size.fixed for size in shaped.sizes):
        return tiles
    return tilings(shaped, written, readers, accesses, partial(rule, priced=True))
