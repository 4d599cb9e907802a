"""Which work goes block by block through the shared memory of a GPU: contractions, and what runs across its operand.

Example, a matrix product and a transpose:
    in:   t1 = in0[i,k] * in1[k,j];  out = sum t1[i,j,k] over k         out = in0[j,i]
    out:  out | i:16:4,j:16:4,k:8:16 | i j k k' k'' i' j' i'' j'' 0     out | i:4:8,j:32 | i j 0 i' i'' j'
          t1  | ... | i j k k' 0 1 k'' i' j' i'' j''
          i' and j' are for threads, i'' and j'' unrolled               i'' and j' are for threads, i' unrolled

A block copies what its threads read, along memory, before they read it in any order. Neighbors of the last axis of the
result are neighbors among the threads, so that they store along memory too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ilang.core.dtype import BYTES
from ilang.core.ir.schedule import Loop, Role
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.record import record
from ilang.core.schedule.choose.tile import RUN, Access, Factors, tiling
from ilang.core.schedule.extents import Extents

SIDE: tuple[Role, ...] = ("u", "t", "u")
"""What the parts of a side of a contraction's tile are for: groups of elements, threads, elements of a group."""
SEQUENTIAL: Role = ""
Side = tuple[int, ...]


@record
class Tile:
    """The loops of an assignment whose innermost ones are a block's; ``depth`` of them stand outside the copies.

    Of what it reads, a copy is made where an access lacks one of its axes, or runs across. Blocks fill copies again and
    again where there is ``room`` for two of each, in bytes; none where they fill them once.
    """

    factors: Factors
    order: tuple[Loop, ...]
    roles: tuple[Role, ...]
    depth: int
    room: int = 0


def gpu_tile(
    node: Assignment, extents: Extents, accesses: Sequence[Access], machine: Machine
) -> Tile | None:
    """How an assignment goes block by block; None where nothing is gained.

    Args:
        node: an assignment.
        extents: of the program.
        accesses: the indices, over its axes, of all that it reads.
        machine: what the blocks belong to.
    """
    tile = _contraction(node, extents, accesses, machine)
    return tile or _across(node, extents, accesses, machine) or _row(node, extents, accesses)


def _contraction(
    node: Assignment, extents: Extents, accesses: Sequence[Access], machine: Machine
) -> Tile | None:
    """Blocks of a contraction: both operands of a block's terms are copied, and read again by its threads."""
    tile = tiling(node, extents, accesses, machine)
    if tile is None or any(part.axis() is None for index in accesses for part in index):
        return None
    *others, last = node.reduced_axes()
    terms, extent = machine.tiles.terms, extents.fixed(node.sizes[last])
    sides = _sides(node, extents, (tile.rows, tile.lanes), machine)
    factors: list[tuple[int, ...]] = [()] * len(node.axes)
    factors[tile.rows], factors[tile.lanes] = sides
    factors[last] = (terms,) if extent is not None and extent <= RUN else (RUN // terms, terms)
    parts = [Loop(last, part) for part in range(len(factors[last]) + 1)]
    batch = [a for a in node.output_axes() if a not in (tile.rows, tile.lanes)]
    outer = (*map(Loop, (*batch, tile.rows, tile.lanes, *others)), *parts[:-1])
    loops, inner = [*outer, parts[-1]], [SEQUENTIAL]
    for level, role in enumerate(SIDE, 1):
        for axis, side in zip((tile.rows, tile.lanes), sides, strict=True):
            part = level - (len(SIDE) - len(side))
            loops += [Loop(axis, part)] if part > 0 else []
            inner += [role] if part > 0 else []
    assert machine.device is not None
    room = machine.device.shared_bytes if extent is None or terms < extent else 0
    return Tile(tuple(factors), tuple(loops), _roles(outer, tuple(inner)), len(outer), room)


def _sides(
    node: Assignment, extents: Extents, axes: tuple[int, int], machine: Machine
) -> tuple[Side, Side]:
    """How the sides of a block's tile are split: the largest of which there are as many as there are multiprocessors.

    A thread has some elements that are neighbors, so that it reads them at a time; along the rows of the largest tile
    it has two such groups, as far apart as threads are many.
    """
    threads, each = machine.tiles.threads, machine.tiles.rows
    plain, small = (threads, each), (threads, each // 2)
    choices: tuple[tuple[Side, Side], ...] = (((2, *plain), plain), (plain, plain), (small, small))
    counts = [extents.fixed(node.sizes[axis]) for axis in node.output_axes()]
    assert machine.device is not None
    for sides in choices:
        parts = {axis: prod(side) for axis, side in zip(axes, sides, strict=True)}
        known = [count or 0 for count in counts]
        blocks = prod(
            -(-count // parts.get(axis, 1))
            for axis, count in zip(node.output_axes(), known, strict=True)
        )
        if None in counts or machine.device.multiprocessors <= blocks:
            return sides
    return choices[-1]


def _across(
    node: Assignment, extents: Extents, accesses: Sequence[Access], machine: Machine
) -> Tile | None:
    """Blocks of pointwise work that reads along another axis than it stores."""
    outputs = node.output_axes()
    if node.acc is not None or node.base is not None or len(set(outputs)) < len(node.target):
        return None
    if not outputs or any(part.axis() is None for index in accesses for part in index):
        return None
    last = outputs[-1]
    ends = [
        index[-1].axis() for index in accesses if any(part.axis() == last for part in index[:-1])
    ]
    other = next((axis for axis in ends if axis is not None and axis != last), None)
    if other is None or any(extents.is_small(node.sizes[axis]) for axis in (other, last)):
        return None
    along, across = machine.tiles.block
    each = machine.tiles.window_block
    factors: list[tuple[int, ...]] = [()] * len(node.axes)
    factors[other], factors[last] = (each, along // each), (across,)
    outer = (*(a for a in outputs if a not in (other, last)), other, last)
    loops = [*(Loop(axis) for axis in outer), Loop(other, 1), Loop(other, 2), Loop(last, 1)]
    return Tile(tuple(factors), tuple(loops), _roles(outer, ("u", "t", "t")), len(outer))


def _row(node: Assignment, extents: Extents, accesses: Sequence[Access]) -> Tile | None:
    """A reduction along memory: a block for each element of the result, whose threads share the row."""
    reduced = node.reduced_axes()
    if node.acc is None or node.base is not None or not reduced:
        return None
    ends = {index[-1].axis() for index in accesses if index}
    walked = {axis for index in accesses if index for axis in index[-1].axes()}
    last = reduced[-1]
    if last not in ends or walked & set(node.output_axes()) or extents.is_small(node.sizes[last]):
        return None
    kept = dict.fromkeys(node.output_axes())
    order = (*kept, *reduced)
    roles = _roles(order[:-1], ("t",))
    return Tile(((),) * len(node.axes), tuple(map(Loop, order)), roles, len(order))


def _roles(outer: Sequence[object], inner: tuple[Role, ...]) -> tuple[Role, ...]:
    """The roles of loops outside the copies, which are for blocks, and of those inside."""
    outside: list[Role] = ["" for _ in outer]
    return (*outside, *inner)


def copied_bytes(index: Access, tile: Tile, dtype: str) -> int:
    """The bytes of what a block copies for an access, an eighth more for rows that are padded."""
    axes = {part.axis() for part in index}
    inner = [loop for loop in tile.order[tile.depth :] if loop.axis in axes]
    return prod(tile.factors[loop.axis][loop.part - 1] for loop in inner) * BYTES[dtype] * 9 // 8


def is_copied(index: Access, node: Assignment, tile: Tile) -> bool:
    """Whether a block copies what an access reads: it lacks an axis of the tile, or runs across.

    The loops outside the copies walk what is copied, all but a number of elements that is known.
    """
    axes = [part.axis() for part in index]
    walked = {loop.axis for loop in tile.order[tile.depth :]}
    if None in axes or len(set(axes)) < len(axes) or not walked & set(axes):
        return False
    if any(axis is not None and not tile.factors[axis] and axis in walked for axis in axes):
        return False
    lacks = not walked <= set(axes)
    return lacks or (node.acc is None and axes[-1] != node.output_axes()[-1])
