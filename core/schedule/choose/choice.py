"""The schedule of everything unscheduled: a nest per assignment, and which values share a kernel.

Example:
    in:   >ij~i & <ij~i, nothing written
    out:  || i j and || i j, one kernel, which shares i
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ilang.core.ir.schedule import Nest
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.size_class import Extents
from ilang.core.machine import Machine
from ilang.core.schedule.choose.accesses import accesses_of
from ilang.core.schedule.choose.inlining import inlining
from ilang.core.schedule.choose.known import Analysis
from ilang.core.schedule.choose.nests import Choice, choose_nests
from ilang.core.schedule.choose.short_rows import short_rows
from ilang.core.schedule.choose.tile import tiling
from ilang.core.schedule.choose.tilings import tilings
from ilang.core.schedule.fuse import Provenance

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
    readers = inlining(shaped, () if apart is None else apart.copies)
    accesses = accesses_of(shaped, readers, machine)
    rule = partial(tiling, extents=extents, machine=machine)
    tiles = tilings(shaped, written, readers, accesses, rule)
    if any(tiles.tiles):
        from ilang.core.schedule.choose.row_blocks import by_rows, in_phases

        tiles = by_rows(shaped, readers, tiles)
        if apart is not None:
            tiles = in_phases(apart, tiles)
        elif any(size.fixed for size in shaped.sizes) and not any(
            tile is not None and tile.is_by_rows() for tile in tiles.tiles
        ):
            tiles = tilings(shaped, written, readers, accesses, partial(rule, priced=True))
    rows = short_rows(shaped, readers, accesses, tiles, extents, machine)
    return Analysis(
        shaped, written, provenance, machine, readers, accesses, tiles, extents, rows, apart
    )
