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

from ilang.core.calculus.affine import Affine
from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Role
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.schedule.choose.accesses import Access, Arrays
from ilang.core.schedule.choose.gpu_parts import has_few_results
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
    outputs, reduced = node.output_axes(), node.reduced_axes()
    large = [axis for axis in outputs if not extents.is_small(node.sizes[axis])]
    if not (large and reduced and _is_plain(node, accesses)):
        return None
    last = large[-1]
    outer, inner = outputs[: outputs.index(last)], outputs[outputs.index(last) + 1 :]
    known = {axis: extents.fixed(node.sizes[axis]) or 0 for axis in (*inner, *reduced)}
    copied = tuple(index for index in accesses if is_strided(index, last, known))
    if 0 in known.values() or not copied:
        return None
    device = machine.gpu()
    across = next((a for a in reversed(outer) if _moves_windows(copied, a, known)), None)
    most = device.block_threads // prod(known[axis] for axis in inner)
    threads = 1 << most.bit_length() >> 1  # so that blocks begin at sectors
    while 0 < threads:
        rows = 1 if across is None else machine.tiles.window_rows
        sides = {across: rows, last: threads // rows} if across is not None else {last: threads}
        block = {a: _at_most(n, extents.fixed(node.sizes[a])) for a, n in sides.items()}
        if _bytes(copied, accesses, {**known, **block}) <= device.shared_bytes:
            return _loops(node, block, inner, _is_turned(copied, last, known), copied)
        threads = threads // 2 if device.warp < threads else 0
    return None


def short_row_loops(
    node: Assignment, extents: Extents, accesses: Arrays, machine: Machine
) -> BlockTile | None:
    """The loops of a reduction over rows of few elements, many of them for each element of the result; else None.

    Each block copies rows that lie beside each other, and its threads share them. Where many results read the same
    rows, as those of a convolution read its weights, each block would copy them again: a thread computes a result.

    Args: as of ``strided_loops``.
    """
    first, *others = node.reduced_axes() or (None,)
    if first is None or extents.is_small(node.sizes[first]) or not _is_plain(node, accesses):
        return None
    known = {axis: extents.fixed(node.sizes[axis]) or 0 for axis in others}
    copied = tuple(index for index in accesses if is_strided(index, first, known))
    if 0 in known.values() or not copied:
        return None
    outputs = set(node.output_axes())
    is_shared = any(outputs - {a for part in index for a in part.axes()} for index in copied)
    if is_shared and not has_few_results(node, extents, machine):
        return None
    device = machine.gpu()
    count = extents.fixed(node.sizes[first])
    rows = _at_most(device.most_block_threads, count)
    if count is not None and count <= rows:
        rows //= 2  # the second kernel has at least two parts to add
    while device.warp <= rows:
        if _bytes(copied, accesses, {**known, first: rows}) <= device.shared_bytes:
            return _parts_of_rows(node, first, rows, _is_turned(copied, first, known), copied)
        rows //= 2
    return None


def _parts_of_rows(
    node: Assignment, first: int, rows: int, is_turned: bool, copied: tuple[Access, ...]
) -> BlockTile:
    """The loops of blocks that have so many iterations of the first reduced axis, and all of the others."""
    outer = (Loop(first), *map(Loop, dict.fromkeys(node.output_axes())))
    terms = tuple(Loop(axis) for axis in node.reduced_axes() if axis != first)
    plain: list[Role] = ["" for _ in terms]
    blocks: list[Role] = ["" for _ in outer[1:]]
    inside = (*terms, Loop(first, 1)) if is_turned else (Loop(first, 1), *terms)
    roles: tuple[Role, ...] = (*plain, "t") if is_turned else ("t", *plain)
    factors = tuple((rows,) if axis == first else () for axis in range(len(node.axes)))
    return BlockTile(factors, (*outer, *inside), ("p", *blocks, *roles), len(outer), strided=copied)


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


def _moves_windows(copied: Sequence[Access], axis: int, known: Mapping[int, int]) -> bool:
    """Whether an axis moves windows of all copies, by no more than their size, and does nothing else."""
    parts = [part for index in copied for part in index if axis in part.axes()]
    windows = [part for part in parts if 1 < _span(part, {**known, axis: 1})]
    return len(windows) == len(copied) == len(parts) and all(
        part.coefficient(axis) <= _span(part, {**known, axis: 1}) for part in parts
    )


def _is_turned(copied: Sequence[Access], last: int, known: Mapping[int, int]) -> bool:
    """Whether threads would go down a copy whose rows are a power of two long, so that they meet in banks."""
    rows = [
        _row(index, last, known)
        for index in copied
        if index[_place(index, last)].axis() is not None
    ]
    return any(1 < row and row & (row - 1) == 0 for row in rows)


def _at_most(count: int, extent: int | None) -> int:
    """So many, or, where there are fewer, the next power of two."""
    return count if extent is None else min(count, 1 << max(0, extent - 1).bit_length())


def _bytes(copied: Sequence[Access], accesses: Arrays, block: Mapping[int, int]) -> int:
    """The bytes of a copy of each array that is read so, an eighth more for rows that are padded."""
    count = sum(accesses[index] * prod(_span(part, block) for part in index) for index in copied)
    return count * WIDEST * 9 // 8


def _loops(
    node: Assignment,
    block: Mapping[int, int],
    inner: Sequence[int],
    is_turned: bool,
    copied: tuple[Access, ...],
) -> BlockTile:
    """The loops of blocks with so many elements of each of some axes, and all of the inner ones."""
    outer = [Loop(axis) for axis in node.output_axes() if axis not in inner]
    terms = [Loop(axis) for axis in node.reduced_axes()]
    threads = [*(Loop(axis, 1) for axis in block), *map(Loop, inner)]
    loops = (*outer, *terms, *threads) if is_turned else (*outer, *threads, *terms)
    roles: list[Role] = ["t" if loop in threads else "" for loop in loops]
    factors = tuple((block[axis],) if axis in block else () for axis in range(len(node.axes)))
    return BlockTile(factors, loops, tuple(roles), len(outer), strided=copied)
