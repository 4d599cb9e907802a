"""A value with several readers, computed once, inside the loops that all of them are in: rule 5 of the choice.

Example, a softmax whose rows are one kernel:
    in:   e = exp(...) || i j, read by s = sum e over j || i j and by out = e / s || i j, all of one kernel
    out:  e inside i, with the loops i j, its i being that of the kernel

What is computed in tiles has a place inside the blocks of rows that its readers go by, or else inside the loops over
batches around its rows and lanes.
"""

from __future__ import annotations

from ilang.core.ir.schedule import Nest
from ilang.core.ir.shaped import Assignment
from ilang.core.record import replace
from ilang.core.schedule.choose.accesses import strided_order
from ilang.core.schedule.choose.known import Analysis, ChosenNests, Staged
from ilang.core.schedule.choose.sites import loops_inside, outside_rows, shared_loops
from ilang.core.schedule.choose.taking import inverse, taken
from ilang.core.schedule.fuse import mapping


def shared_inside(
    analysis: Analysis, known: ChosenNests, value: int, node: Assignment
) -> tuple[int, Staged] | None:
    """The number of loops around the one place of a value for all of its readers, and what is chosen there.

    None where there is no such place, or no need of one.
    """
    reads, tilings = analysis.inlining.all_reads[value], analysis.tilings
    if not _may_share(analysis, known, value):
        return None
    places = [
        known.leading_places(reader, read, inverse(mapping(node, read))) for reader, read in reads
    ]
    common = 0
    while all(common < len(p) and p[common] == places[0][common] for p in places):
        common += 1
    common = min(common, *(outside_rows(analysis, r, value, known.nest(r)) for r, _ in reads))
    reader, read = reads[0]
    nest, tiling = known.nest(reader), tilings.found(value)
    if tiling is not None:
        from ilang.core.schedule.choose.row_blocks import batch_site, rows_site

        within = rows_site(tiling, mapping(node, read), nest)
        within = batch_site(tiling, mapping(node, read), nest) if within is None else within
        if not within or within > common:
            return None
        common = within
    else:
        if node.acc:
            common = min(common, _reduced_inside(analysis, known, value, node))
        if not _is_worth(analysis, reader, nest, common):
            return None
    outer = replace(nest, order=nest.order[:common])
    axes = {loop.axis for loop in outer.order}
    pairs = {
        inner: reader_axis
        for inner, reader_axis in mapping(node, read).items()
        if reader_axis in axes
    }
    loops = tilings.loops(value, node)
    if loops is None:
        loops = taken(outer, pairs, analysis.order(value, node))
        loops = loops_inside(analysis, value, loops, common)
    return common, Staged(value, *loops, known.shared_places(reader, pairs, outer.order))


def _reduced_inside(analysis: Analysis, known: ChosenNests, value: int, node: Assignment) -> int:
    """The number of its readers' loops that a reduction has outermost by itself: others would walk memory in steps."""
    order = strided_order(node, analysis.accesses[value], analysis.extents, analysis.machine)
    return min(
        shared_loops(node, known.nest(reader), inverse(mapping(node, read)), order)
        for reader, read in analysis.inlining.all_reads[value]
    )


def _may_share(analysis: Analysis, known: ChosenNests, value: int) -> bool:
    """Whether a value is read by several, all of which are free to compute it inside, and need all of it there."""
    inlining = analysis.inlining
    reads = inlining.all_reads[value]
    readers = {reader for reader, _ in reads}
    return (
        inlining.sole[value] is None
        and value not in inlining.kept
        and bool(reads)
        and not any(reader in known.imposed for reader in readers)
        and not any(known.is_part(reader) for reader in readers)
        and not any(index.looked for _, read in reads for index in read.index)
    )


def _is_worth(analysis: Analysis, reader: int, nest: Nest, depth: int) -> bool:
    """Whether loops around a place are of more than a few iterations."""
    node = analysis.shaped.assignment(reader)
    sizes = (node.sizes[loop.axis] for loop in nest.order[:depth])
    return any(not analysis.extents.is_small(size) for size in sizes)
