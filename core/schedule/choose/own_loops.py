"""The splits and loops of an assignment, where nothing that reads it says them: rules 4 and 6 of the choice.

Example:
    in:   out = sum in0[i,k] * in1[k,j] over k      out = in0[j,i]
    out:  | i:6,j:64,k:512 | j i k k' i' j'         | j:32 | j j' i
"""

from __future__ import annotations

from ilang.core.dtype import BYTES
from ilang.core.ir.scalar import Operand
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment
from ilang.core.schedule.choose.accesses import loop_order, reads_of
from ilang.core.schedule.choose.known import Analysis, ChosenNests
from ilang.core.schedule.choose.loops import Loops, priced_loops, scan_loops
from ilang.core.schedule.choose.packing import Across, Packed, TileAxes
from ilang.core.schedule.choose.short_rows import across, has_row_lanes
from ilang.core.schedule.choose.tile_cost import Price
from ilang.core.schedule.choose.transposes import transposed


def own_nest(
    analysis: Analysis, known: ChosenNests, value: int, node: Assignment
) -> tuple[Nest, Packed | None]:
    """The nest of a value without its sites, whatever a person wrote, and the tile or block that it has."""
    squares: list[tuple[Loops, Price]] = []
    sites = (None,) * len(node.reads)
    staged, tile = known.staged.get(value), analysis.tilings.loops(value, node)
    lanes = analysis.row_lanes[value]
    if analysis.apart is not None and value in analysis.apart.copies:
        from ilang.core.schedule.choose.row_blocks import copied_rows

        tile = copied_rows(analysis.apart, analysis.tilings, value)
    if staged is not None:
        nest = Nest(staged.factors, staged.order, sites)
    elif tile is not None:
        nest = Nest(*tile, sites)
    elif value in analysis.scans:
        axes = analysis.order(value, node)
        nest = Nest(
            *scan_loops(node, analysis.scans[value], axes, analysis.extents, analysis.machine),
            sites,
        )
    elif lanes is not None:
        axes = analysis.order(value, node)
        nest = Nest(*across(node, axes, lanes, analysis.extents, analysis.machine), sites)
    else:
        axes = analysis.order(value, node)
        squares = transposed_loops(analysis, value, node)
        loops = squares[0][0] if squares else (((),) * len(axes), tuple(map(Loop, axes)))
        if node.reduced_axes() and node.base is None:
            loops = loops_by_itself(analysis, value, node)[0][0]
        nest = Nest(*loops, sites)
    rows = packed_rows(analysis, value, nest)
    if rows is not None:
        return nest, rows
    if lanes is not None and has_row_lanes(nest, lanes):
        return nest, lanes
    return nest, Across(nest.order[-2].axis, nest.order[-1].axis) if squares else None


def loops_by_itself(analysis: Analysis, value: int, node: Assignment) -> list[tuple[Loops, Price]]:
    """The splits and loops that a reduction may have where nothing around it says them, the cheapest first."""
    accesses = analysis.accesses[value]
    order = loop_order(node, accesses, analysis.machine)
    return priced_loops(node, analysis.extents, order, reads_of(node, accesses), analysis.machine)


def packed_rows(analysis: Analysis, value: int, nest: Nest) -> TileAxes | None:
    """The tile of a value whose nest has the loops of one, if nobody said what it copies."""
    tile = analysis.tilings.tiles[value]
    if tile is None or nest.written or nest.order != tile.order():
        return None
    node, sizes = analysis.shaped.assignment(value), analysis.shaped.sizes
    extents = {axis: sizes[node.sizes[axis]].fixed for axis in node.output_axes()}
    lengths = {axis: extent for axis, extent in extents.items() if extent is not None}
    return tile.axes(lengths, analysis.machine)


def transposed_loops(analysis: Analysis, value: int, node: Assignment) -> list[tuple[Loops, Price]]:
    """The splits and loops that transposed work may have by itself, the cheapest first; none where nothing is."""
    copies = isinstance(node.scalar, Operand) and not any(
        analysis.inlining.inlined[read.value]
        or BYTES[analysis.shaped.tensors[read.value].dtype] < BYTES["f32"]  # vectors move no less
        for read in node.reads
    )
    return transposed(node, analysis.extents, analysis.accesses[value], copies, analysis.machine)
