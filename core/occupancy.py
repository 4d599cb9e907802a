"""Occupancy: how many blocks of a kernel a multiprocessor of a GPU runs at a time, and which resource limits them.

Threads and shared memory are known. Registers are a compiler's to choose: they are guessed from what a thread holds,
unless somebody has asked one.
"""

from __future__ import annotations

from math import prod

from ilang.core.dtype import BYTES
from ilang.core.ir.gpu import CombineThreads, ThreadLoop, threads_of
from ilang.core.ir.kernel import Block, Define, For, Kernel, Program, blocks_of, every
from ilang.core.ir.rewriting import accesses, named
from ilang.core.ir.schedule import THREAD_DIMENSIONS
from ilang.core.machine import DeviceLimits, Multiprocessor
from ilang.core.record import record

REGISTERS, EACH, LEAST = 10, 4, 16
"""Registers of a thread beside its values; for each array and each loop; and at least."""
TIMES, PER = 4, 3
"""Registers for words of its own arrays: a third more, for what is under way.

So counted, registers are within 20 % of what nvcc 13.0 takes for 56 % of the kernels of ``samples/``, within 75 % for
nine of ten (sm_90, the wider indices); for products in tiles of 128 by 64, of f32 and f64, within 8 %.
"""


@record
class Resources:
    """The resources that a block of a kernel takes: threads, registers of each, bytes of shared memory."""

    threads: int
    registers: int
    shared: int
    kernel: str = ""
    guessed: bool = True


@record
class Occupancy:
    """Blocks of a kernel on a multiprocessor at a time, the share of its warps that they are, and what limits them."""

    taken: Resources
    device: str
    blocks: int
    share: float
    limit: str


def iterations_of(program: Program, spread: ThreadLoop) -> int | None:
    """The iterations of each thread that shares a spread, at most; None where that is not known.

    Iterations of chunks, and of loops along a dimension of a block, are no number.
    """
    extents = [program.sizes[loop.size].fixed for loop in spread.loops]
    known = [extent for extent in extents if extent is not None]
    if spread.over != "threads" or not extents or len(known) < len(extents):
        return None
    first = spread.loops[0]
    if first.chunk is not None or first.role in THREAD_DIMENSIONS:
        return None
    return max(1, -(-prod(known) // spread.threads))


def loads_in_flight(program: Program, spread: ThreadLoop) -> int | None:
    """The iterations of a thread whose loads go together, where it has several; None where it waits for each."""
    iterations, device = iterations_of(program, spread), program.machine.device
    whole = iterations is not None and not any(loop.within for loop in spread.loops)
    if device is None or not whole or (iterations == 1 and spread.vectors is None):
        return None
    return device.loads


def resources_of(program: Program, kernel: Kernel, registers: int | None = None) -> Resources:
    """The resources that a block of a kernel takes; registers are guessed where they are not given."""
    spread, device = threads_of(kernel), program.machine.gpu()
    guessed = registers is None
    if registers is None:
        most = (
            device.registers
            // (spread.blocks * spread.threads)
            // device.register_step
            * device.register_step
        )
        registers = min(_guessed(program, kernel, device), max(LEAST, most))
    shared = _shared(program, kernel, spread, device)
    return Resources(spread.threads, registers, shared, kernel.name, guessed)


def occupancy_of(
    taken: Resources, multiprocessor: Multiprocessor, device: DeviceLimits
) -> Occupancy:
    """The number of blocks that fit, and the resource that limits them."""
    warps = -(-taken.threads // device.warp)
    of_warp = _rounded(taken.registers * device.warp, multiprocessor.register_unit)
    held = (
        multiprocessor.registers // of_warp // multiprocessor.warp_unit * multiprocessor.warp_unit
    )
    bytes_ = _rounded(taken.shared + multiprocessor.shared_reserved, multiprocessor.shared_unit)
    counts = {
        "threads": multiprocessor.warps // warps,
        "blocks": multiprocessor.blocks,
        "registers": held // warps,
        "shared memory": multiprocessor.shared_bytes // bytes_ if bytes_ else multiprocessor.blocks,
    }
    limit = min(counts, key=lambda name: counts[name])
    share = counts[limit] * warps / multiprocessor.warps
    return Occupancy(taken, multiprocessor.name, counts[limit], share, limit)


def _rounded(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def _shared(program: Program, kernel: Kernel, spread: ThreadLoop, device: DeviceLimits) -> int:
    """The bytes that a block shares: its buffers, those of its warps, and what is combined from warp to warp."""
    sizes = [
        _bytes(program, number)
        for number in named(kernel.body)
        if program.buffers[number].space == "shared"
    ]
    combined = list(every(spread.body, CombineThreads))
    sums = [
        BYTES[s.dtype] * (s.threads // device.warp) for s in combined if device.warp < s.threads
    ]
    return spread.parts() * sum(sizes) + sum(sums)


def _bytes(program: Program, number: int) -> int:
    buffer = program.buffers[number]
    return BYTES[buffer.dtype] * prod(program.sizes[size].fixed or 0 for size in buffer.dims)


def _guessed(program: Program, kernel: Kernel, device: DeviceLimits) -> int:
    """Registers of a thread: what is open around its innermost statements, and its own arrays."""
    word = device.register_bytes
    touched = {number for number, _ in accesses(kernel.body)}
    spaces = {number: program.buffers[number].space for number in touched}
    arrays = sum(not space for space in spaces.values())
    local_bytes = sum(
        _bytes(program, number) for number, space in spaces.items() if space == "local"
    )
    held = (
        REGISTERS + EACH * arrays + local_bytes * TIMES // (PER * word) + _open(kernel.body, word)
    )
    return min(max(LEAST, _rounded(held, device.register_step)), device.most_registers)


def _open(body: Block, word: int) -> int:
    """The most registers, of ``word`` bytes, of loops and scalar variables that are open at a time in a block."""
    most, defined = 0, 0
    for s in body:
        if isinstance(s, Define):
            defined += BYTES[s.dtype] // word or 1
        around = EACH * len(s.loops) if isinstance(s, ThreadLoop) else 0
        around += EACH if isinstance(s, For) and s.role != "u" else 0
        most = max(
            most, defined, *(defined + around + _open(block, word) for block in blocks_of(s))
        )
    return most
