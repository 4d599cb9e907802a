"""The splits and loops of work whose result runs along another axis than something that it reads, the cheapest first.

Example, ``ij~ji`` of 4096 each:
    | j:256 | j j' i    256 elements of a row, all rows inside: 16 of these are transposed at a time, in registers
"""

from __future__ import annotations

from math import prod

from ilang.core.calculus.affine import Affine, variables_of
from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.schedule.choose.accesses import Accesses
from ilang.core.schedule.choose.loops import Loops
from ilang.core.schedule.choose.tile_cost import Price

DOUBLED = 3
"""The times that the least length is doubled at most: what works in parallel shares a row."""


def transposed(
    node: Assignment, extents: Extents, accesses: Accesses, copies: bool, machine: Machine
) -> list[tuple[Loops, Price]]:
    """Splits and loops of transposed work on a processor, with their prices.

    A copy goes in strips of the result, which a target transposes square by square; other work block by block, and
    what runs across is copied before (``Loop`` 1 of the axes walks a block). None where nothing runs across.

    Args:
        node: an assignment.
        extents: of the program.
        accesses: all that it reads and stores, by index over its axes.
        copies: whether it only copies what it reads.
        machine: what the caches belong to.
    """
    outputs, core = node.output_axes(), machine.core
    if core is None or node.acc is not None or node.base is not None:
        return []
    if len(set(outputs)) < len(node.target) or any(p.looked for index in accesses for p in index):
        return []
    last = outputs[-1] if outputs else -1
    runs = [(index, index[-1].axis()) for index in accesses if _is_outside_last(index, last)]
    other = next(
        (axis for index, axis in runs if axis is not None and not _is_outside_last(index, axis)),
        None,
    )
    if other is None or any(extents.is_small(node.sizes[axis]) for axis in (other, last)):
        return []
    factors: list[tuple[int, ...]] = [()] * len(node.axes)
    rest = [Loop(axis) for axis in outputs if axis not in (other, last)]
    along, across = machine.tiles.block
    order = (*rest, Loop(other), Loop(other, 1), Loop(last))
    if not copies:
        factors[last] = (across,)
        order = (*rest, Loop(other), Loop(last), Loop(other, 1), Loop(last, 1))
    size = BYTES[node.scalar.dtype or ""]
    whole = size * prod(map(extents.usual, node.sizes))
    reads = round(sum(accesses.values()) - machine.memory.strided_write)
    priced = list[tuple[Loops, Price]]()
    for length in (along << doubled for doubled in range(DOUBLED + 1)):
        factors[other] = (length,)
        block = 0 if copies else length * across * (1 + reads) * size
        price = _price(machine, reads, whole, block, length * size)
        priced.append(((tuple(factors), order), price))
    return sorted(priced, key=lambda each: each[1].cycles())


def _price(machine: Machine, reads: int, whole: int, block: int, run: int) -> Price:
    """The price of work on so many arrays that it reads, in bytes: of an array, of all in a block, of a run of lines.

    Each line is read, and two are moved for one that is stored. What a block copies is written and read once more
    where a cache does not hold the block. The first lines of each run come late.
    """
    core = machine.core
    assert core is not None
    count = whole / machine.memory.line_bytes
    late = min(1.0, core.late * machine.memory.line_bytes / run)
    lines, waited, filling = list[float](), 0.0, 0.0
    for cache, held in enumerate(core.cache_bytes):
        moved = count * ((reads + 2) * (held < whole * (1 + reads)) + 2 * (held < block))
        lines.append(moved * core.line_cycles[cache])
        filling += 0.0 if cache else moved * core.filling
        waited += count * late * core.scattered[cache] * (held < whole)
    elements = whole / BYTES["f32"]
    return Price(
        ((0.0, filling, 0.0, *lines),), 0.0, 0.0, waited, 0.0, 0.0, elements * core.transposed
    )


def _is_outside_last(index: tuple[Affine, ...], axis: int) -> bool:
    """Whether an axis walks another dimension than the last."""
    return axis in variables_of(index[:-1])
