"""Lengths of the last rows of a buffer that a block shares, with which threads of a warp meet in few banks.

Example, of f32, in 32 banks:
    in:   t[16,4,16,2]: threads i1 and i2 read t[i1,i2,j,k], threads i1 and j write it
    out:  t[16,4,17,3]: rows of 51 elements begin in banks of their own

Each access of the buffer is counted: the threads of a warp are numbered along the loops that they share, and those that
reach other words of one bank wait for each other. Rows get the fewest elements more of those that cost least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ilang.core.calculus.affine import Affine
from ilang.core.dtype import BYTES
from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import ThreadLoop
from ilang.core.ir.ids import VariableId
from ilang.core.ir.rewriting import parts_of
from ilang.core.ir.scalar import Load
from ilang.core.ir.schedule import UNIT_ROLES
from ilang.core.passes.gpu.matrices import product_of

MOST: tuple[tuple[int, int], ...] = ((0, 0), (0, 1), (1, 0), (1, 1))
"""Numbers of elements more that the last two dimensions may have, the least storage first."""
TIMES = 16
"""Iterations of a loop whose extent is not known."""

BY_NAME = ("tz", "ty", "tx", "l")
"""In which order loops by name number threads, the one last that goes from each to the next."""

Index = tuple[Affine, ...]
Lanes = list[dict[VariableId, int]]


def rows_of(
    program: ir.Program, spreads: Sequence[ThreadLoop], number: int, extents: Sequence[int]
) -> list[int]:
    """The extents of a buffer of two dimensions or more, the last two with room for what spares cycles.

    Args:
        program: the program of the buffer.
        spreads: the loops that threads share which touch it.
        number: of the buffer.
        extents: of what it keeps.
    """
    banks, narrow, touched = _accesses(program, spreads, number)
    most = MOST
    if any(_multiplies(s) for spread in spreads for s in ir.statements_within(spread.body)):
        wide = program.machine.vector_lanes(program.buffers[number].dtype)
        most = tuple((0, n) for n in range(0, banks * narrow, wide))  # rows stay whole vectors

    def padded(more: tuple[int, int]) -> list[int]:
        return [*extents[:-2], extents[-2] + more[0], extents[-1] + more[1]]

    def cycles(more: tuple[int, int]) -> int:
        dims = padded(more)
        steps = [prod(dims[d + 1 :]) for d in range(len(dims))]
        return sum(
            times * _cycles(lanes, index, steps, (banks, narrow)) for lanes, index, times in touched
        )

    return padded(min(most, key=cycles))


def row_of(
    program: ir.Program,
    spreads: Sequence[ThreadLoop],
    number: int,
    extents: Sequence[int],
    leading: int,
    wide: int,
) -> int:
    """The elements of a row, which all dimensions but the leading ones are, with room for what spares cycles.

    Args:
        program: the program of the buffer.
        spreads: the loops that threads share which touch it.
        number: of the buffer.
        extents: of what it keeps.
        leading: dimensions that are no part of a row.
        wide: a row is a multiple of this.
    """
    banks, narrow, touched = _accesses(program, spreads, number)
    row = prod(extents[leading:])

    def cycles(length: int) -> int:
        dims = [*extents[:leading], length]
        steps = [prod(dims[d + 1 :]) for d in range(leading)]
        steps += [prod(extents[d + 1 :]) for d in range(leading, len(extents))]
        return sum(
            times * _cycles(lanes, index, steps, (banks, narrow)) for lanes, index, times in touched
        )

    return min(range(row, row + banks * narrow, wide), key=cycles)


def _accesses(
    program: ir.Program, spreads: Sequence[ThreadLoop], number: int
) -> tuple[int, int, list[tuple[Lanes, Index, int]]]:
    """Banks, elements of a word, and all accesses of a buffer: by which threads, where, and how often."""
    device = program.machine.gpu()
    size = BYTES[program.buffers[number].dtype]
    banks = min(device.banks, device.banks * device.bank_bytes // size)
    touched = [
        (lanes, index, times)
        for spread in spreads
        for lanes in [_lanes(program, spread, min(device.warp, banks))]
        for index, times in _touched(program, spread, spread.body, number, 1)
    ]
    return banks, max(1, device.bank_bytes // size), touched


def _lanes(program: ir.Program, spread: ThreadLoop, count: int) -> Lanes:
    """The variables of a spread in the first threads of a block, as many as reach memory at a time."""
    loops = sorted(
        spread.loops, key=lambda loop: BY_NAME.index(loop.role) if loop.role in BY_NAME else -1
    )
    extents = [program.sizes[loop.size].fixed or TIMES for loop in loops]
    lanes: Lanes = []
    for thread in range(min(count, prod(extents))):
        lane, left = {}, thread
        for loop, extent in reversed([*zip(loops, extents, strict=True)]):
            lane[loop.variable], left = left % extent, left // extent
        lanes.append(lane)
    return lanes


def _multiplies(s: ir.Statement) -> bool:
    """Whether a matrix unit will multiply what a statement does."""
    return isinstance(s, ir.For) and s.role in UNIT_ROLES


def _touched(
    program: ir.Program, spread: ThreadLoop, body: ir.Block, number: int, times: int
) -> Iterator[tuple[Index, int]]:
    """Every index of a buffer, and how often a thread is there; of what a matrix unit multiplies, as that has it."""
    for s in body:
        if isinstance(s, ir.For) and _multiplies(s):
            _, product = product_of(program, s, spread.loops)
            yield from _touched(program, spread, (product,), number, times)
            continue
        if isinstance(s, ir.Store) and s.buffer == number:
            yield s.index, times
        for part in parts_of(s):
            if isinstance(part, Load) and part.buffer == number:
                yield part.index, times
        more = (program.sizes[s.size].fixed or TIMES) if isinstance(s, ir.For) else 1
        for block in ir.blocks_of(s):
            yield from _touched(program, spread, block, number, times * more)


def _cycles(lanes: Lanes, index: Index, steps: Sequence[int], banks: tuple[int, int]) -> int:
    """The time of a warp for one access: as many cycles as there are words that it reaches of one bank.

    ``banks`` are their number, and the elements of a word.
    """
    count, narrow = banks
    words = {
        sum(step * part.value(lane) for step, part in zip(steps, index, strict=True)) // narrow
        for lane in lanes
    }
    met = [0] * count
    for word in words:
        met[word % count] += 1
    return max(met)
