"""Sums of rows and of columns on a GPU by price: the lanes that share one, what registers keep, and parts of the terms.

Example, sums of rows of 1,024 elements and of 10, and of columns:
    in:   +ij~i of x[i,1024]           out:  +ij~i | j:32 | i j' j | i:p,j':l,j:u                a warp a row
    in:   softmax of x[i,1024]         out:  +ij~i | j:32:4 | i j' j j'' | i:p,j':l,j:u,j'':u    with vectors
    in:   +ij~j of x[65536,16]         out:  +ij~j | i:32 | i j i' | i:p,j:p                     2,048 parts of each

Where registers keep a row it is read once, all loads of a thread together, and what several passes over it need stays
there; longer ones are read in a loop, and by several blocks where a result for each part, and one more kernel, cost
less than what other multiprocessors would not do. Elements that one pass needs go from memory into its sum, one by one,
so adjacent lanes have adjacent ones of them. The price is the time of all sums on a multiprocessor: the largest of what
instructions, sectors of the cache of all, bytes of memory and waiting for it take.
"""

from __future__ import annotations

from math import log2, prod
from operator import attrgetter
from typing import NamedTuple

from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import MULTIPROCESSORS, Machine
from ilang.core.schedule.choose.gpu_blocks import multiple
from ilang.core.schedule.choose.gpu_price import EXPOSED, cheapest_first, with_parts
from ilang.core.schedule.choose.terms import RUN
from ilang.core.schedule.choose.tile import RowLanes
from ilang.core.schedule.choose.tile_cost import Price

SHARES = tuple(2.0**n for n in range(-7, 4))
"""Turns of a device that parts of sums are to fill: the numbers that are compared."""


class SumWork(NamedTuple):
    """The work of sums in a kernel of them.

    Fields:
        results: how many there are, ``FULL`` where that is not known.
        counts: the extents of the reduced axes.
        width: bytes of the widest element.
        values: that have an element for each term.
        combined: values that are one of all terms.
        is_kept: whether several passes need the elements.
        are_columns: whether neighbors in memory are terms of different results.
    """

    results: int
    counts: tuple[int, ...]
    width: int
    values: int = 1
    combined: int = 1
    is_kept: bool = False
    are_columns: bool = False


def sum_work(node: Assignment, extents: Extents) -> SumWork | None:
    """A reduction alone as work; None where an extent comes at run time."""
    counts = [extents.fixed(size) for size in node.sizes]
    if None in counts or node.scalar.dtype is None:
        return None
    results, terms = (
        tuple(extents.usual(node.sizes[axis]) for axis in axes)
        for axes in (dict.fromkeys(node.output_axes()), node.reduced_axes())
    )
    return SumWork(prod(results), terms, BYTES[node.scalar.dtype])


def priced_lanes(work: SumWork, machine: Machine) -> list[tuple[RowLanes, Price]]:
    """The lanes for rows with their prices, the cheapest first; none where registers have no room for a row.

    The numbers of lanes are powers of two, up to a block, each with work for half of its time at least.
    """
    device, (extent,) = machine.gpu(), work.counts
    widest = _vector(work, machine)
    vector = widest if work.is_kept and extent % widest == 0 else 1
    priced, lanes = list[tuple[RowLanes, Price]](), 1
    while lanes <= device.block_threads and (lanes == 1 or lanes * vector < 2 * extent):
        each = multiple(-(-extent // lanes), vector)
        words = each * max(1, work.width // device.register_bytes)
        if 2 * words <= machine.tiles.most_elements:  # what is read, and what is made of it
            by = RowLanes(lanes, vector, "l" if lanes <= device.warp else "t")
            priced.append((by, _price(work, by, each, 1, machine)))
        lanes *= 2
    return cheapest_first(priced, attrgetter("merged"))


def priced_parts(work: SumWork, machine: Machine) -> list[tuple[int | None, Price]]:
    """The iterations of the outermost reduced axis in a part of a sum, None for all, with prices, the cheapest first.

    The threads of a block share a part of a row, vectors at a time; each thread has one of a column.
    """
    device, terms, first = machine.gpu(), prod(work.counts), work.counts[0]
    by = RowLanes(device.block_threads, _vector(work, machine), "t")
    by = RowLanes(1, 1, "") if work.are_columns else by
    unit, threads = by.lanes * by.vector, device.multiprocessors * device.block_threads
    chunks = [first]
    for turns in SHARES:
        part = -(-terms // max(1, int(turns * threads) // (by.lanes * work.results)))
        part = multiple(part, max(unit, RUN) if RUN < part else unit)
        chunks.append(min(first, -(-part * first // terms)))
    at_once = device.loads * by.vector
    priced = [
        (chunk if chunk < first else None, _price(work, by, at_once, -(-first // chunk), machine))
        for chunk in dict.fromkeys(chunks)
    ]
    return cheapest_first(priced, attrgetter("merged"))


def _vector(work: SumWork, machine: Machine) -> int:
    """The adjacent elements that a thread moves at a time at most."""
    return min(machine.gpu().vector_elements, machine.vector_bytes() // work.width)


def _price(work: SumWork, by: RowLanes, at_once: int, parts: int, machine: Machine) -> Price:
    """Cycles of a multiprocessor for its part of all sums, of which a thread loads so many elements at once."""
    device, unit = machine.gpu(), MULTIPROCESSORS[-1]
    within = min(by.lanes, device.warp)
    block = max(by.lanes, device.block_threads)
    turns = -(-work.results * parts * by.lanes // block // device.multiprocessors)
    warps = turns * block / device.warp
    each = multiple(-(-prod(work.counts) // (parts * by.lanes)), by.vector)
    met = unit.met if device.warp < by.lanes else 0
    worked = work.values * unit.element * each
    run = by.vector * (device.warp if work.are_columns else within) * work.width
    begun = 1 if by.vector < each and run % device.sector_bytes else 0
    moved = (1 + work.is_kept) * warps * device.warp * each * work.width
    registers = unit.around + min(each, at_once) * work.width // 3
    held = min(unit.warps, unit.registers // (registers * device.warp))
    waited = -(-each // at_once) * unit.latency + worked
    at_a_time = (
        warps * (worked + work.combined * (unit.combined * log2(within) + met)) / unit.schedulers,
        moved / unit.memory_bytes,
        max(1.0, warps / held) * (waited + work.combined * (log2(within) * unit.shuffled + met)),
        moved * (1 + begun * device.sector_bytes / run) / unit.cache_bytes,
    )
    price = Price(
        at_once=(at_a_time,),
        idle=0,
        stored=(sum(at_a_time) - max(at_a_time)) * EXPOSED,
        waited=0,
        merged=0,
        begun=0,
        copied=0,
    )
    return price if parts == 1 else with_parts(price, work.results, parts, work.width, machine)
