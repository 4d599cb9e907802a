"""Work that goes block by block through the shared memory of a GPU: contractions, and what runs across its operand.

Example, a matrix product and a transpose:
    in:   t1 = in0[i,k] * in1[k,j];  out = sum t1[i,j,k] over k         out = in0[j,i]
    out:  out | i:16:4,j:16:4,k:8:16 | i j k k' k'' i' j' i'' j'' 0     out | i:4:8,j:32 | i j 0 i' i'' j'
          t1  | ... | i j k k' 0 1 k'' i' j' i'' j''
          i' and j' are for threads, i'' and j'' unrolled               i'' and j' are for threads, i' unrolled

A block copies what its threads read, along memory, before they read it in any order. Neighbors of the last axis of the
result are adjacent threads, so that they store along memory too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Role
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.record import replace
from ilang.core.schedule.choose.accesses import Access, Arrays
from ilang.core.schedule.choose.gpu_blocks import BlockShape, priced_blocks
from ilang.core.schedule.choose.gpu_parts import loops_of
from ilang.core.schedule.choose.gpu_strides import strided_loops
from ilang.core.schedule.choose.gpu_sums import priced_parts, sum_work
from ilang.core.schedule.choose.gpu_windows import windows_tiles
from ilang.core.schedule.choose.terms import PART, RUN
from ilang.core.schedule.choose.tile import BlockTile, tiling
from ilang.core.schedule.choose.tile_cost import Price

SIDE: tuple[Role, ...] = ("u", "t", "u")
"""The roles of the parts of a side of a contraction's tile: groups of elements, threads, elements of a group."""
PARTS = {1: (0, 1, 0), 2: (0, 1, 2), 3: (1, 2, 3)}
"""The part of a side that each of them is, where it is split into so many; 0: none."""
COLUMN = 2 * RUN
"""Terms of a chunk of a column of unknown length: its partial result costs 1/256 of the terms."""
SEQUENTIAL: Role = ""


def gpu_tile(
    node: Assignment, extents: Extents, accesses: Arrays, is_followed: bool, machine: Machine
) -> BlockTile | None:
    """The tile of an assignment that goes block by block; None where nothing is gained.

    Args:
        node: an assignment.
        extents: of the program.
        accesses: the indices of what it reads, each with the number of arrays.
        is_followed: whether pointwise work on its elements may end its blocks.
        machine: what the blocks belong to.
    """
    priced = next(priced_tiles(node, extents, accesses, is_followed, machine), None)
    if priced is not None:
        return priced[0]
    row = _row(node, extents, accesses)
    ways = (_across, strided_loops, _elements)
    tiles = (way(node, extents, accesses, machine) for way in ways)
    return row or next((tile for tile in tiles if tile is not None), None)


def priced_tiles(
    node: Assignment, extents: Extents, accesses: Arrays, is_followed: bool, machine: Machine
) -> Iterator[tuple[BlockTile, Price]]:
    """The tiles of a contraction or a convolution with their prices, the cheapest first; none of anything else.

    Both operands of a block's terms are copied, and read again by its threads. Where each block has a part of the terms
    only, what all parts of an element have is added after.

    Args: as of ``gpu_tile``.
    """
    axes = _sides(node, extents, accesses, machine)
    if axes is None:
        yield from windows_tiles(node, extents, accesses, machine)
        return
    for block, price in priced_blocks(node, extents, accesses, axes, is_followed, machine):
        yield _blocks(node, extents, axes, block, machine), price


def _sides(
    node: Assignment, extents: Extents, accesses: Arrays, machine: Machine
) -> tuple[int, int] | None:
    """The axes of the rows and of the lanes of a contraction's tiles; None for another assignment.

    Of a sum of many terms no known extent of the result but 1 is small: sides of blocks fit it.
    """
    terms = prod(extents.usual(node.sizes[axis]) for axis in node.reduced_axes())
    sides = {node.sizes[axis] for axis in node.output_axes() if PART <= terms}
    several = {size for size in sides if 1 < (extents.fixed(size) or 0)}
    tile = tiling(node, accesses, replace(extents, small=extents.small - several), machine)
    if tile is None or any(part.axis() is None for index in accesses for part in index):
        return None
    return tile.rows, tile.lanes


def _blocks(
    node: Assignment, extents: Extents, axes: tuple[int, int], block: BlockShape, machine: Machine
) -> BlockTile:
    """The loops of a contraction with blocks of a shape along two axes."""
    last = node.reduced_axes()[-1]
    factors: list[tuple[int, ...]] = [()] * len(node.axes)
    factors[axes[0]], factors[axes[1]] = block.sides
    parts, (*steps, innermost) = loops_of(node, extents, block, factors)
    batch = [a for a in node.output_axes() if a not in axes]
    outer = (*map(Loop, (*batch, *axes)), *parts, *steps)
    loops, inner = [*outer, innermost], [SEQUENTIAL]
    for level, role in enumerate(SIDE):
        for axis, side in zip(axes, block.sides, strict=True):
            part = PARTS[len(side)][level]
            loops += [Loop(axis, part)] if part else []
            inner += [role] if part else []
    extent = extents.fixed(node.sizes[last])
    again = bool(steps) and (extent is None or block.terms < extent)
    room = machine.gpu().shared_bytes if again else 0
    outside: list[Role] = ["p" if loop in parts else SEQUENTIAL for loop in outer]
    return BlockTile(tuple(factors), tuple(loops), (*outside, *inner), len(outer), room)


def _across(
    node: Assignment, extents: Extents, accesses: Arrays, machine: Machine
) -> BlockTile | None:
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
    return BlockTile(tuple(factors), tuple(loops), _roles(outer, ("u", "t", "t")), len(outer))


def _row(node: Assignment, extents: Extents, accesses: Arrays) -> BlockTile | None:
    """A reduction along memory: a block for each element of the result, whose threads share the row."""
    reduced = node.reduced_axes()
    if node.acc is None or node.base is not None or not reduced:
        return None
    ends = {index[-1].axis() for index in accesses if index}
    last_axes = {axis for index in accesses if index for axis in index[-1].axes()}
    several = {axis for axis in node.output_axes() if extents.fixed(node.sizes[axis]) != 1}
    last = reduced[-1]
    if last not in ends or last_axes & several or extents.is_small(node.sizes[last]):
        return None
    kept = tuple(dict.fromkeys(node.output_axes()))
    order = (*kept, *reduced)
    roles = _roles(order[:-1], ("t",))
    return BlockTile(
        ((),) * len(node.axes), tuple(map(Loop, order)), roles, len(order), is_row=True
    )


def _elements(
    node: Assignment, extents: Extents, accesses: Arrays, machine: Machine
) -> BlockTile | None:
    """A reduction of which a thread has a part of each element, where that takes less time than one of all terms.

    Columns of unknown extents have chunks, of which each thread has as many as follow from their number.
    """
    reduced, kept = node.reduced_axes(), tuple(dict.fromkeys(node.output_axes()))
    if node.acc is None or node.base is not None or not (reduced and kept):
        return None
    if any(part.looked for index in accesses for part in index):
        return None
    work, each = sum_work(node, extents), None
    if work is not None:
        each, _ = priced_parts(work._replace(are_columns=True), machine)[0]
    elif len(reduced) == 1 and not extents.is_small(node.sizes[reduced[0]]):
        ends = (reduced[0], kept[-1])
        columns = any(index and (index[0].axis(), index[-1].axis()) == ends for index in accesses)
        each = COLUMN if columns else None
    if each is None:
        return None
    factors = (each // RUN, RUN) if RUN < each and len(reduced) == 1 else (each,)
    return in_parts(node, kept, factors, SEQUENTIAL, is_known=work is not None)


def in_parts(
    node: Assignment, kept: Sequence[int], factors: tuple[int, ...], inner: Role, *, is_known: bool
) -> BlockTile:
    """A reduction whose outermost reduced axis is split into chunks; ``inner`` is the role of its innermost loop.

    The loop over chunks is outside of loops over elements, so that adjacent threads have adjacent elements. If the
    number of chunks is computed at run time, that loop is inside, and consecutive iterations share a chunk.
    """
    first, *others = node.reduced_axes()
    splits: list[tuple[int, ...]] = [()] * len(node.axes)
    splits[first] = factors if 1 < prod(factors) else ()
    inside = [Loop(first, part) for part in range(1, len(splits[first]) + 1)]
    elements = tuple(map(Loop, kept))
    outer = (Loop(first), *elements) if is_known else (*elements, Loop(first))
    loops = (*outer, *inside, *map(Loop, others))
    roles: list[Role] = ["p" if loop == Loop(first) else SEQUENTIAL for loop in loops[:-1]]
    return BlockTile(tuple(splits), loops, (*roles, inner), len(loops))


def _roles(outer: Sequence[object], inner: tuple[Role, ...]) -> tuple[Role, ...]:
    """The roles of loops outside the copies, which are for blocks, and of those inside."""
    outside: list[Role] = ["" for _ in outer]
    return (*outside, *inner)


def copied_bytes(index: Access, tile: BlockTile, dtype: str) -> int:
    """The bytes of what a block copies for an access, an eighth more for rows that are padded."""
    axes = {part.axis() for part in index}
    inner = [loop for loop in tile.order[tile.depth :] if loop.axis in axes]
    return prod(tile.factors[loop.axis][loop.part - 1] for loop in inner) * BYTES[dtype] * 9 // 8


def is_copied(index: Access, node: Assignment, tile: BlockTile) -> bool:
    """Whether a block copies what an access reads: it lacks an axis of the tile, or runs across.

    The loops outside the copies walk what is copied, all but a number of elements that is known.
    """
    if tile.strided is not None:
        return index in tile.strided
    axes = [part.axis() for part in index]
    inner = {loop.axis for loop in tile.order[tile.depth :]}
    if None in axes or len(set(axes)) < len(axes) or not inner & set(axes):
        return False
    if any(axis is not None and not tile.factors[axis] and axis in inner for axis in axes):
        return False
    lacks = not inner <= set(axes)
    return lacks or (node.acc is None and axes[-1] != node.output_axes()[-1])
