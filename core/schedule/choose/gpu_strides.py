"""Reductions whose threads would read memory in strides on a GPU: rows of few elements, and windows that move by some.

Example, sums of rows of four elements, and the largest of windows of two by two:
    in:   +ij~i of x[i,j], j in 0..4                 >(2y+u:2)(2x+v:2)~yx
    out:  +ij~i | i:256 | i 0 j i' | i:p,i':t        ... | y:4,x:64 | y x 0 y' x' u v | y:p,x:p,y':t,x':t

Adjacent threads begin a row, or a step of windows, apart: a warp reads as many sectors again for each term as
for the first. A block copies all that its threads read, along memory, and they read the copy. Rows that are a power of
two long would meet in few banks: terms stand outside of the threads' loops there, so that the copy is transposed.

Example, one sum of rows of three elements, whose parts a second kernel adds:
    in:   +ij~. of x[i,j], j in 0..3                  out:  +ij~. | i:1024 | i 0 i' j | i:p,i':t
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import le

from ilang.core.calculus.affine import Affine
from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Role
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.schedule.choose.accesses import Access, Arrays
from ilang.core.schedule.choose.gpu_blocks import up
from ilang.core.schedule.choose.tile import BlockTile

WIDEST = max(BYTES.values())
"""Of an element: what is read may be of any type."""
MOST_APART = 2
"""The distance of adjacent windows, in lengths of one, at most: at least half of a copy is read."""


def strided_loops(
    node: Assignment, extents: Extents, accesses: Arrays, machine: Machine
) -> BlockTile | None:
    """The loops of a reduction whose threads read in strides what a block may copy; None where they do not.

    Args:
        node: an assignment.
        extents: of the program.
        accesses: the indices of what it reads, each with the number of arrays.
        machine: what the blocks belong to.
    """
    if node.acc is None or not _is_plain(node, accesses):
        return None
    sides = (node.output_axes()[::-1], node.reduced_axes()[:1])
    large = (next((a for a in side if not extents.is_small(node.sizes[a])), None) for side in sides)
    tiles = (_copies(node, extents, accesses, a, machine) for a in large if a is not None)
    return next((tile for tile in tiles if tile is not None), None)


def _copies(
    node: Assignment, extents: Extents, accesses: Arrays, last: int, machine: Machine
) -> BlockTile | None:
    """The loops of blocks whose threads are adjacent along an axis, and have all of what follows it.

    The axis is one of the result, or the first reduced one, of whose rows each block adds a part. Where many results
    read the same rows, as those of a convolution read its weights, each block would copy them again: none has parts.
    """
    outputs, device = node.output_axes(), machine.gpu()
    is_part = last not in outputs
    outer = outputs if is_part else outputs[: outputs.index(last)]
    inner, terms = outputs[len(outer) + 1 :], [a for a in node.reduced_axes() if a != last]
    known = {axis: extents.fixed(node.sizes[axis]) or 0 for axis in (*inner, *terms)}
    copied = tuple(index for index in accesses if is_strided(index, last, known))
    is_shared = any({*outer} - {a for part in index for a in part.axes()} for index in copied)
    if 0 in known.values() or not copied or (is_part and is_shared):
        return None
    rows = [_row(i, last, known) for i in copied if i[_place(i, last)].axis() is not None]
    is_turned = any(row & (row - 1) == 0 for row in rows if 1 < row)
    moving = None if is_part else _moving(copied, outer, known)
    sides = {} if moving is None else {moving: machine.tiles.window_rows}
    most = device.most_block_threads if is_part else device.block_threads
    threads = up(1 + most // prod(known[a] for a in inner)) // 2  # blocks begin at sectors
    while threads:
        block = {**sides, last: threads // prod(sides.values())}
        for axis, count in block.items():
            if (extent := extents.fixed(node.sizes[axis])) is not None:
                block[axis] = min(count, up(-(-extent // 2) if is_part else extent))
        if is_part and block[last] < device.warp:
            return None
        if _bytes(copied, accesses, {**known, **block}) <= device.shared_bytes:
            return _loops(node, block, inner, copied, is_turned=is_turned)
        threads = threads // 2 if device.warp < threads else 0
    return None


def _is_plain(node: Assignment, accesses: Arrays) -> bool:
    """Whether an accumulation stores elements at axes of their own, under no condition, and looks up none."""
    return (
        node.acc is not None
        and node.base is None
        and not node.guards
        and not any(read.guards for read in node.reads)
        and not any(part.looked for index in accesses for part in index)
        and all(part.axis() is not None for part in node.target)
        and len(set(node.output_axes())) == len(node.target)
    )


def is_strided(index: Access, last: int, known: Mapping[int, int]) -> bool:
    """Whether adjacent elements along an axis begin apart, and a copy of all between has at most twice what they read.

    Args:
        index: what is read.
        last: the axis along which threads are adjacent.
        known: the extents of the axes that a block has all of.
    """
    axes = [axis for part in index for axis in part.variables()]
    if last not in axes or len(set(axes)) < len(axes):
        return False
    if any(part.sizes or any(c < 0 for c, _ in part.steps()) for part in index):
        return False
    place = _place(index, last)
    if not {axis for part in index[place:] for axis in part.axes()} <= {last, *known}:
        return False
    step, span = index[place].coefficient(last), _span(index[place], {**known, last: 1})
    return 1 < step * _row(index, last, known) and step <= MOST_APART * span


def _place(index: Access, axis: int) -> int:
    return next(n for n, part in enumerate(index) if axis in part.axes())


def _span(part: Affine, extents: Mapping[int, int]) -> int:
    """The number of elements of a dimension from the first to the last one that a block reads."""
    last = {axis: extent - 1 for axis, extent in extents.items()}
    return 1 + part.value(last) - part.offset


def _row(index: Access, last: int, known: Mapping[int, int]) -> int:
    """The elements of a row: of what follows the dimension that an axis moves in."""
    return prod(_span(part, known) for part in index[_place(index, last) + 1 :])


def _moving(copied: Sequence[Access], outer: Sequence[int], known: Mapping[int, int]) -> int | None:
    """The last axis that moves windows of all copies, by no more than their size, and does nothing else."""
    for axis in reversed(outer):
        parts = [part for index in copied for part in index if axis in part.axes()]
        sizes = [_span(part, {**known, axis: 1}) for part in parts]
        steps = [part.coefficient(axis) for part in parts]
        if len(parts) == len(copied) and all(map(le, steps, sizes)) and 1 < min(sizes):
            return axis
    return None


def _bytes(copied: Sequence[Access], accesses: Arrays, block: Mapping[int, int]) -> int:
    """The bytes of a copy of each array that is read so, an eighth more for rows that are padded."""
    count = sum(accesses[index] * prod(_span(part, block) for part in index) for index in copied)
    return count * WIDEST * 9 // 8


def _loops(
    node: Assignment,
    block: Mapping[int, int],
    inner: Sequence[int],
    copied: tuple[Access, ...],
    *,
    is_turned: bool,
) -> BlockTile:
    """The loops of blocks with so many elements of each of some axes, and all of the inner ones.

    Copies stand inside of what is left of these and of axes of the result; a part of reduced ones is a block's.
    """
    reduced = node.reduced_axes()
    parts = [Loop(axis) for axis in block if axis in reduced]
    outer = [*parts, *(Loop(a) for a in dict.fromkeys(node.output_axes()) if a not in inner)]
    threads = [*(Loop(axis, 1) for axis in block), *map(Loop, inner)]
    terms = [Loop(axis) for axis in reduced if axis not in block]
    loops = (*outer, *terms, *threads) if is_turned else (*outer, *threads, *terms)
    roles: list[Role] = ["p" if x in parts else "t" if x in threads else "" for x in loops]
    factors = tuple((block[axis],) if axis in block else () for axis in range(len(node.axes)))
    return BlockTile(factors, loops, tuple(roles), len(outer), strided=copied)
