"""The lanes that share a row of known length on a GPU, and keep its elements in registers, by price.

Example, sums of rows of 1,024 elements and of 10:
    in:   +ij~i of x[i,1024]           out:  +ij~i | j:32 | i j' j | i:p,j':l,j:u                a warp a row
    in:   softmax of x[i,1024]         out:  +ij~i | j:32:4 | i j' j j'' | i:p,j':l,j:u,j'':u    with vectors

A row is read once, all loads of a thread together, and what several passes over it need stays in registers. Elements
that one pass needs go from memory into its sum, one by one, so adjacent lanes have adjacent ones of them. The price
is the time of all rows on a multiprocessor: the largest of what instructions, sectors, and waiting for memory take.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

from ilang.core.machine import MULTIPROCESSORS, Machine
from ilang.core.record import record

EXPOSED = 0.25
"""The part of a time that no longer one hides."""


@record
class RowLanes:
    """The lanes of a row, the adjacent elements that each of them moves at a time, and how often; those of a warp."""

    lanes: int
    vector: int
    times: int
    warp: int

    def each(self) -> int:
        """The elements of a lane."""
        return self.vector * self.times


def lanes_of_row(
    extent: int,
    rows: int | None,
    width: int,
    work: tuple[int, int],
    machine: Machine,
    *,
    is_kept: bool = True,
) -> RowLanes | None:
    """The cheapest lanes for rows of so many elements; None where registers have no room for a row.

    Args:
        extent: the elements of a row.
        rows: how many there are; None where that is not known: as many as a device runs at a time.
        width: bytes of the widest element.
        work: the number of values that have an element for each of a row, and of those that are one of a row.
        machine: what the lanes belong to.
        is_kept: whether several passes need the elements.
    """
    candidates = list(_candidates(extent, width, is_kept, machine))
    prices = [_price(each, rows, width, work, machine) for each in candidates]
    if not candidates:
        return None
    return candidates[prices.index(min(prices))]


def _candidates(extent: int, width: int, is_kept: bool, machine: Machine) -> Iterator[RowLanes]:
    """Powers of two as lanes, up to a block, each with work for half of its time at least."""
    device = machine.gpu()
    vector = min(device.vector_elements, machine.vector_bytes() // width)
    vector = vector if is_kept and extent % vector == 0 else 1
    lanes = 1
    while lanes <= device.block_threads and (lanes == 1 or lanes * vector < 2 * extent):
        times = -(-extent // (lanes * vector))
        words = times * vector * max(1, width // device.register_bytes)
        if 2 * words <= machine.tiles.most_elements:  # what is read, and what is made of it
            yield RowLanes(lanes, vector, times, device.warp)
        lanes *= 2


def _price(
    each: RowLanes, rows: int | None, width: int, work: tuple[int, int], machine: Machine
) -> float:
    """Cycles of a multiprocessor for its part of all rows."""
    passes, combined = work
    device, unit = machine.gpu(), MULTIPROCESSORS[-1]
    within = min(each.lanes, device.warp)
    most = device.multiprocessors * unit.warps * device.warp
    warps = (most if rows is None else rows) * each.lanes / device.warp / device.multiprocessors
    steps = unit.combined * log2(within) + (unit.met if device.warp < each.lanes else 0)
    worked = passes * unit.element * each.each()
    issued = warps * (worked + combined * steps) / unit.schedulers
    run = each.vector * within * width
    partial = 1 if 1 < each.times and run % device.sector_bytes else 0
    sectors = each.times * device.warp / within * (run / device.sector_bytes + partial)
    moved = 2 * warps * sectors * device.sector_bytes / unit.cache_bytes
    registers = unit.around + each.each() * width // 3
    held = min(unit.warps, unit.registers // (registers * device.warp))
    waited = max(1.0, warps / held) * (
        unit.latency + worked + combined * log2(within) * unit.shuffled
    )
    largest = max(issued, moved, waited)
    return largest + (issued + moved + waited - largest) * EXPOSED
