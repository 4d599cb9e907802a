"""The price of a block's tile on a GPU: cycles of a device for all blocks, by what each step issues and moves.

A multiprocessor begins a multiply-add of a warp in as many cycles as its lanes need for one, and reads 128 bytes of
shared memory in a cycle, whatever threads of a warp have in common. A step computes the terms that a block has copied;
the longest one of arithmetic, of reading shared memory and of what comes from the cache of all counts, and copying
beside it. What waits for memory is hidden where enough warps are there, or where the next copy is under way.

Example, of 128 by 128 elements by 256 threads, 16 terms a step:
    64 multiply-adds and 4 loads of 16 bytes a term and warp: 17 and 16 cycles; 8 warps, 16 terms: 2,176 cycles a step
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from ilang.core.dtype import BYTES
from ilang.core.machine import MULTIPROCESSORS, Machine
from ilang.core.record import replace
from ilang.core.schedule.choose.tile_cost import Price

EXPOSED = 0.25
"""The part of a latency that is left where another step is computed meanwhile."""
FULL = 1 << 20
"""Results that a price is of, where it is not known how many there are: so many that they fill a device."""


ALIKE = 1.02
"""Prices no further apart are alike: of these the choice that moves least is taken."""
T = TypeVar("T")


class BlockWork(NamedTuple):
    """The work of a block in each of its ``steps``, which copies, waits and computes.

    Fields:
        threads: of the block.
        sums: accumulators of a thread, each of which has a multiply-add a term.
        held: registers of a thread for them, and for what their sums meet.
        each: terms of a step.
        words: words of shared memory that a thread reads a term.
        loads: instructions that read them.
        copied: elements that the block copies in a step of each array, whole sectors.
        steps: of the block.
        shared: bytes of its copies.
        stored: elements that the block stores, whole sectors.
        doubled: whether the next step is copied while this one computes.
        size: bytes of an element.
    """

    threads: int
    sums: int
    held: int
    each: int
    words: float
    loads: float
    copied: Sequence[int]
    steps: int
    shared: int
    stored: int
    doubled: bool
    size: int = BYTES["f32"]


def price_of(work: BlockWork, blocks: int | None, elements: int, machine: Machine) -> Price | None:
    """The price of all blocks on a device; None where no multiprocessor has room for one.

    Args:
        work: of a block.
        blocks: how many there are; None where that is not known, for ``FULL`` results.
        elements: of a block.
        machine: the device.
    """
    device, unit = machine.gpu(), MULTIPROCESSORS[-1]
    registers, warps = work.held + device.other_registers, -(-work.threads // device.warp)
    resident = min(
        unit.registers // (registers * work.threads),
        unit.shared_bytes // (work.shared + unit.shared_reserved),
        unit.warps // warps,
        unit.blocks,
    )
    if not resident or device.most_registers < registers or device.shared_bytes < work.shared:
        return None
    turns = FULL / elements / device.multiprocessors
    if blocks is not None:
        turns = -(-blocks // device.multiprocessors)
        resident = max(1, min(resident, int(turns)))
    begun = device.warp / device.multiply_adds
    slack = max(1.0, device.least_warps / (resident * warps)) * work.steps * turns
    issued = work.sums * work.size // BYTES["f32"] + work.loads
    copied = sum(work.copied)
    moved = copied * work.size / unit.cache_bytes
    return Price(
        at_once=(
            (
                slack * work.each * warps * issued * begun,
                slack * work.each * warps * work.words * device.warp / device.banks,
                slack * moved,
            ),
        ),
        idle=0,
        stored=turns * work.stored * work.size / unit.cache_bytes,
        waited=turns * work.steps * _waits(work, machine) * device.latency / resident,
        merged=0,
        begun=turns * 2 * device.latency / resident,
        copied=slack * copied / device.warp * device.copied_instructions * begun,
    )


def cheapest_first(
    priced: Iterable[tuple[T, Price]], moved: Callable[[Price], float]
) -> list[tuple[T, Price]]:
    """Candidates by their prices; of those alike the one first that has moved least."""
    by_cycles = sorted(priced, key=lambda each: each[1].cycles())
    almost = [x for x in by_cycles if x[1].cycles() <= ALIKE * by_cycles[0][1].cycles()]
    chosen = sorted(almost, key=lambda each: moved(each[1]))[:1]
    return [*chosen, *(each for each in by_cycles if each not in chosen)]


def with_parts(
    price: Price,
    elements: int,
    parts: int,
    size: int,
    machine: Machine,
    *,
    is_followed: bool = False,
) -> Price:
    """A price with that of adding so many parts, and of what follows: a kernel each, which reads and writes.

    Threads of a block add the parts of an element where elements are few, else one thread does.
    """
    device, unit = machine.gpu(), MULTIPROCESSORS[-1]
    by_blocks = elements <= machine.threads.most_blocks and device.warp <= parts
    turns = -(-parts // (device.block_threads if by_blocks else device.loads))
    moved = 2 * (parts + is_followed) * elements * size
    return replace(
        price,
        merged=moved / unit.cache_bytes / device.multiprocessors + turns * device.latency,
        begun=price.begun + (1 + is_followed) * device.launched,
    )


def _waits(work: BlockWork, machine: Machine) -> float:
    """The waits of a step for memory: once for all that a thread loads at a time, or for what is not there yet.

    What a thread loads at a time is under way while the step before computes, where there are two copies.
    """
    at_once = machine.gpu().loads * machine.vector_bytes() * work.threads
    rounds = [-(-count * work.size // at_once) for count in work.copied]
    return EXPOSED if work.doubled and max(rounds) == 1 else sum(rounds)
