"""The price of a block's tile on a GPU: cycles of a device for all blocks, by what each step issues and moves.

A multiprocessor begins a multiply-add of a warp in as many cycles as its lanes need for one, and reads 128 bytes of
shared memory in a cycle, whatever threads of a warp have in common. A step computes the terms that a block has copied;
the longer one of arithmetic and of reading shared memory counts, and copying beside it. What waits for memory is hidden
where enough warps are there, or where the next copy is under way.

Example, of 128 by 128 elements by 256 threads, 16 terms a step:
    64 multiply-adds and 4 loads of 16 bytes a term and warp: 16 and 16 cycles; 8 warps, 16 terms: 2,048 cycles a step
"""

from __future__ import annotations

from typing import NamedTuple

from ilang.core.machine import MULTIPROCESSORS, Machine


class BlockWork(NamedTuple):
    """The work of a block in each of its ``steps``, which copies, waits and computes.

    Fields:
        threads: of the block.
        sums: accumulators of a thread, each of which has a multiply-add a term.
        each: terms of a step.
        words: elements of shared memory that a thread reads a term.
        loads: instructions that read them.
        copied: elements that the block copies in a step.
        steps: of the block.
        shared: bytes of its copies.
        doubled: whether the next step is copied while this one computes.
    """

    threads: int
    sums: int
    each: int
    words: float
    loads: float
    copied: int
    steps: int
    shared: int
    doubled: bool


def cycles_of(work: BlockWork, blocks: int | None, elements: int, machine: Machine) -> float:
    """The cycles of all blocks on a device; of so many that it is full, for each element of the result.

    Args:
        work: of a block.
        blocks: how many there are; None where that is not known.
        elements: of a block.
        machine: the device.
    """
    device, each = machine.gpu(), MULTIPROCESSORS[-1]
    warps = -(-work.threads // device.warp)
    begun = device.warp / device.multiply_adds
    issued = (work.sums + work.loads) * begun
    read = work.words * device.warp * device.bank_bytes / (device.banks * device.bank_bytes)
    computed = work.each * warps * max(issued, read)
    copied = work.copied / device.warp * device.copied_instructions * begun
    registers = min(device.most_registers, 2 * work.sums + device.other_registers)
    resident = max(
        1,
        min(
            each.registers // (registers * work.threads),
            each.shared_bytes // (work.shared + each.shared_reserved),
            each.warps // warps,
            each.blocks,
        ),
    )
    if blocks is not None:
        resident = max(1, min(resident, -(-blocks // device.multiprocessors)))
    waited = device.latency / resident if not work.doubled else device.latency / resident / 4
    slack = max(1.0, device.least_warps / (resident * warps))
    step = (computed + copied) * slack + waited
    if blocks is None:
        return work.steps * step / elements
    return -(-blocks // device.multiprocessors) * work.steps * step
