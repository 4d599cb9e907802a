"""Sites of the operands of an assignment, and their loops: rule 3 of the choice.

Example:
    in:   t1 = in0[i,k] * in1[k,j], inlined;  out = sum t1[i,j,k] over k, tiled, loops j i k k' i' j'
    out:  t1 inside all of them, with the same loops
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from math import prod

from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment, Input, Read, View
from ilang.core.record import replace
from ilang.core.schedule.choose.accesses import reads_of
from ilang.core.schedule.choose.known import Analysis, ChosenNests, Staged
from ilang.core.schedule.choose.loops import Loops, in_blocks, priced_loops
from ilang.core.schedule.choose.packing import Packed, TileAxes, packed_site
from ilang.core.schedule.choose.taking import inverse, leading, shared_prefix, taken
from ilang.core.schedule.fuse import axis_pairs, mapping

Site = tuple[int | None, Staged | None]
"""The number of loops around the place of an operand, None where it is computed whole; what is chosen for it there."""


def site_of(analysis: Analysis, known: ChosenNests, value: int, read: Read, nest: Nest) -> Site:
    """The site where a read of a value with this nest is computed, or copied."""
    producer = analysis.shaped.nodes[read.value]
    if any(index.looked for index in read.index):
        return None, None  # which elements are read is known only when they are
    if isinstance(producer, Input | View):
        return packed_site(known.packed.get(value), read, nest), None
    if analysis.inlining.sole[read.value] is None or _loses_lanes(analysis, value, read.value):
        return None, None
    pairs, tilings = mapping(producer, read), analysis.tilings
    if tilings.tiles[read.value] is not None or tilings.is_by_rows(read.value):
        return _tiled_site(analysis, known, value, read.value, pairs, nest)
    if _moves(known.packed.get(value), read, nest):
        return None, None
    back, order = inverse(pairs), analysis.order(read.value, producer)
    packed = known.packed.get(value) if analysis.inlining.inlined[read.value] else None
    shared = shared_loops(producer, nest, back, order)
    shared = min(shared, outside_rows(analysis, value, read.value, nest))
    if shared == 0 and producer.axes and producer.target:
        return None, None
    is_part = known.is_part(value) or any(index.axis() is None for index in read.index)
    if not is_part and not any(nest.factors):
        shared = _priced_depth(analysis, read.value, producer, taken(nest, pairs, order), shared)
    outer = replace(nest, order=nest.order[:shared])
    places = known.shared_places(value, pairs, outer.order)
    around = None if packed is None else packed.inside(back)
    factors, loops = taken(outer, pairs, order)
    if not is_part:
        factors, loops = loops_inside(analysis, read.value, (factors, loops), shared)
    return shared, Staged(read.value, factors, loops, places, around, is_part)


def _priced_depth(
    analysis: Analysis, value: int, node: Assignment, loops: Loops, shared: int
) -> int:
    """The number of shared loops in which windows are reduced: all, or one less where a row of results takes less.

    A row is stored, and read again.
    """
    reads = reads_of(node, analysis.accesses[value])
    is_window = any(1 < len(part.axes()) for index in reads for part in index)
    if shared < 2 or not node.reduced_axes() or node.base is not None or not is_window:
        return shared
    axes, machine = [loop.axis for loop in loops[1]], analysis.machine
    core = machine.core
    if core is None:
        return shared
    given = node, analysis.extents, axes, reads, machine
    inside, row = (priced_loops(*given, depth)[0][1].cycles() for depth in (shared, shared - 1))
    results = prod(analysis.extents.usual(node.sizes[axis]) for axis in node.output_axes())
    again = results * (core.stored + 1 / core.loads) / machine.vector_lanes("f32")
    return shared - 1 if row + again < inside else shared


def loops_inside(analysis: Analysis, value: int, loops: Loops, shared: int) -> Loops:
    """The splits and loops of a value inside of so many loops of its readers: of a reduction, the cheapest."""
    node = analysis.shaped.assignment(value)
    if not node.reduced_axes() or node.base is not None:
        return loops
    if any(loops[0]):
        return in_blocks(node, loops, analysis.extents, analysis.machine, shared)
    reads = reads_of(node, analysis.accesses[value])
    axes = [loop.axis for loop in loops[1]]
    return priced_loops(node, analysis.extents, axes, reads, analysis.machine, shared)[0][0]


def shared_loops(
    producer: Assignment, nest: Nest, back: dict[int, list[int]], order: tuple[int, ...]
) -> int:
    """The number of a reader's outer loops that a producer shares; all columns of a block are reduced at once."""
    reduced = producer.reduced_axes() if producer.acc else ()
    if producer.acc and not any(nest.factors):
        return shared_prefix(nest.order, back, order, set(reduced))
    shared = leading(nest.order, back)
    last = nest.order[shared - 1] if shared else None
    if producer.acc is None or last is None or order[-1] in reduced:
        return shared
    return shared - (last.part > 0 and order[-1] in back.get(last.axis, ()))


def _loses_lanes(analysis: Analysis, reader: int, value: int) -> bool:
    """Whether a value has lanes across rows, and would have other loops inside of a reader that has none."""
    rows, is_inlined = analysis.row_lanes, analysis.inlining.inlined[value]
    return rows[value] is not None and rows[reader] is None and not is_inlined


def outside_rows(analysis: Analysis, reader: int, value: int, nest: Nest) -> int:
    """The number of a reader's loops in which a value may be: not in a row where all of a block have it at once."""
    lanes = analysis.row_lanes[reader]
    block = None if lanes is None else Loop(lanes.last, 1)
    is_inside = analysis.row_lanes[value] is None or analysis.inlining.inlined[value]
    return len(nest.order) if is_inside or block not in nest.order else nest.order.index(block)


def _moves(packed: Packed | None, read: Read, nest: Nest) -> bool:
    """Whether the windows of a tile read a value: a copy of it has what is past its ends, so that no read is tested."""
    return (
        isinstance(packed, TileAxes)
        and any(index.axis() is None for index in read.index)
        and packed_site(packed, read, nest) is not None
    )


def _tiled_site(
    analysis: Analysis,
    known: ChosenNests,
    reader: int,
    value: int,
    pairs: dict[int, int],
    nest: Nest,
) -> Site:
    """Inside the tile loops of a reader that has the same ones; elsewhere a contraction is computed whole."""
    tiling, producer = analysis.tilings.found(value), analysis.shaped.nodes[value]
    end = analysis.tilings.ends[value]
    assert tiling is not None
    assert end is not None
    assert isinstance(producer, Assignment)
    tile, names = tiling
    reader_axes = {axis: pairs[at] for axis, at in names.items() if at in pairs}
    reduced = analysis.shaped.assignment(end[0]).reduced_axes()
    around = tuple(takewhile(lambda loop: loop.axis not in reduced, tile.outer))
    outer = tuple(Loop(reader_axes[x.axis], x.part) for x in around if x.axis in reader_axes)
    same = all(nest.factors[at] == tile.factors[axis] for axis, at in reader_axes.items())
    site: int | None = len(outer)
    if nest.order[: len(outer)] != outer or len(outer) < len(around) or not same:
        from ilang.core.schedule.choose.row_blocks import rows_site

        site = rows_site(tiling, pairs, nest)
    if site is None:
        return None, None
    places = known.shared_places(reader, pairs, nest.order[:site])
    factors, order = analysis.tilings.loops(value, producer) or ((), ())
    return site, Staged(value, factors, order, places, None, known.is_part(reader))


def adopted(analysis: Analysis, known: ChosenNests, value: int, nest: Nest) -> Iterator[Staged]:
    """The splits and the order that producers without a schedule take of a reader whose nest is written.

    Raises:
        ScheduleError: E0322 (an axis could be two loops of the reader).
    """
    node = analysis.shaped.assignment(value)
    taking = set(known.staged)
    for number, read in enumerate(node.reads):
        producer, site = analysis.shaped.nodes[read.value], nest.staged(number)
        if site is None or not isinstance(producer, Assignment) or read.value in taking:
            continue
        if read.value in known.imposed:
            continue
        axes = {loop.axis for loop in nest.order[:site]}
        pairs = {**mapping(producer, read), **axis_pairs(analysis.provenance, value, read, axes)}
        taking.add(read.value)
        yield Staged(read.value, *taken(nest, pairs, analysis.order(read.value, producer)), {})
