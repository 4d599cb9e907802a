"""Split reductions: chunks of terms where a GPU has too few results, and tiles that fit results with a short side.

Example, on 132 multiprocessors, a product of 16 by 65,536 and 65,536 by 16 elements:
    in:   one tile of 16 by 16, 65,536 terms
    out:  256 threads with an element each; 256 chunks of 256 terms, 64 of which are copied at a time

A block, or a thread, reduces a chunk to a partial result, and a second kernel adds the partial results in their order.
There are as many chunks as give each multiprocessor two blocks, since each one costs a write and a read of its result.
If extents are known only at run time, the number of chunks is computed from them (`accumulation.py`); it is 1 if the
tiles of the result fill the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from ilang.core.dtype import BYTES
from ilang.core.ir.schedule import Loop
from ilang.core.ir.shaped import Assignment
from ilang.core.ir.size_class import Extents
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.schedule.choose.terms import RUN

COLUMN = 2 * RUN
"""Terms of a chunk of a column of unknown length: its partial result costs 1/256 of the terms."""
MANY = 1 << 30
"""Elements of a side that is not known to be short."""
MOST_OTHERS = 1
"""Reduced axes beside the last one of a reduction that is split at run time: more take too many indices."""

Side = tuple[int, ...]


@record
class BlockShape:
    """A block's tile of a contraction: its sides, the terms that it copies at a time, and the terms of each chunk.

    With ``shares``, the number of chunks is computed at run time.
    """

    sides: tuple[Side, Side]
    terms: int
    part: int | None
    shares: bool = False


def block_of(
    node: Assignment, extents: Extents, axes: tuple[int, int], machine: Machine
) -> BlockShape | None:
    """The tile of a contraction, the first of several that fills a device, split or not; None of unknown extents.

    Where one side is known and short, the tile has all of it, and much of the other one.

    Args:
        node: a contraction.
        extents: of the program.
        axes: those of the rows and of the lanes of its tiles.
        machine: what the blocks belong to.
    """
    rows, lanes = (extents.fixed(node.sizes[axis]) for axis in axes)
    if rows is None or lanes is None:
        return _with_short_side(node, extents, (rows, lanes), machine)
    batch = [extents.fixed(node.sizes[a]) for a in node.output_axes() if a not in axes]
    terms = [extents.fixed(node.sizes[axis]) for axis in node.reduced_axes()]
    around = None if None in batch else prod(count or 0 for count in batch)
    folded = None if None in terms else prod(count or 0 for count in terms)
    device = machine.gpu()
    is_short = min(rows, lanes) < _short(machine)
    tiles = (
        _fitting(rows, lanes, terms[-1], machine)
        if is_short
        else _squares(machine, node.scalar.dtype)
    )
    for number, (sides, copied, may_part) in enumerate(tiles, 1):
        if around is None:
            return BlockShape(sides, copied, None, shares=True)
        blocks = around * -(-rows // prod(sides[0])) * -(-lanes // prod(sides[1]))
        if blocks == 0 or device.multiprocessors <= blocks:
            return BlockShape(sides, copied, None)
        of_parts = device.parts
        last = is_short or number == len(tiles)
        least = of_parts.least if last else of_parts.instead_of_smaller
        part = _part(blocks, folded, copied, least, machine) if may_part else None
        parts = 1 if part is None or folded is None else -(-folded // part)
        if number == len(tiles) or device.multiprocessors <= blocks * parts:
            return BlockShape(sides, copied, part, shares=folded is None)
    return None


def _with_short_side(
    node: Assignment, extents: Extents, counts: tuple[int | None, int | None], machine: Machine
) -> BlockShape | None:
    """The tile of a contraction one side of whose result is short, and the other one's extent not known; else None."""
    (short, *_) = [count for count in counts if count is not None] or [0]
    if not 0 < short < _short(machine):
        return None
    rows, lanes = (MANY if count is None else count for count in counts)
    last = extents.fixed(node.sizes[node.reduced_axes()[-1]])
    (sides, copied, _), *_ = _fitting(rows, lanes, last, machine)
    return BlockShape(sides, copied, None, shares=True)


def _squares(machine: Machine, dtype: str | None) -> list[tuple[tuple[Side, Side], int, bool]]:
    """Tiles in the order in which they are tried: their sides, the terms they copy, and whether they are split.

    A thread has some adjacent elements, so that it reads them in one vector; along the rows of the largest tile
    it has two such groups, as far apart as threads are many. So it has along lanes where vectors of their type have
    fewer elements: adjacent threads then read adjacent vectors.
    """
    assert dtype is not None
    threads, each, terms = machine.tiles.threads, machine.tiles.rows, machine.tiles.terms
    vector = machine.vector_lanes(dtype)
    plain, small = (threads, each), (threads, each // 2)
    lanes = (each // vector, threads, vector) if vector < each else plain
    return [
        (((2, *plain), lanes), terms, False),
        ((plain, lanes), terms, False),
        ((plain, lanes), terms, True),
        ((small, small), terms, False),
        ((small, small), terms, True),
    ]


def largest(machine: Machine, dtype: str | None) -> BlockShape:
    """The tile of a contraction of a type whose extents are not known."""
    sides, terms, _ = _squares(machine, dtype)[0]
    return BlockShape(sides, terms, None, shares=True)


def other_blocks(
    block: BlockShape, counts: Sequence[int | None], machine: Machine
) -> Iterator[BlockShape]:
    """Other shapes of a block, those first whose threads read least from shared memory for each product.

    A thread has one or more groups of as many adjacent elements as a vector along each side, a block between two warps
    and twice the usual threads, and copies of two steps fit into its shared memory. No side is longer than the extent.

    Args:
        block: the chosen shape, whose parts of the sum stay.
        counts: the extents of both sides, where they are known.
        machine: what the blocks belong to.
    """
    device = machine.gpu()
    vector, usual = device.vector_elements, device.block_threads
    along = [
        (*groups, threads, vector) for threads in (4, 8, 16, 32) for groups in ((), (2,), (4,))
    ]
    shapes = []
    for rows, lanes in product(along, along):
        threads, height, width = rows[-2] * lanes[-2], prod(rows), prod(lanes)
        each = height * width // threads
        fits = all(
            n is None or side <= _up(n) for side, n in zip((height, width), counts, strict=True)
        )
        if not (2 * device.warp <= threads <= 2 * usual and fits):
            continue
        if each > machine.tiles.most_elements:
            continue
        reads = (height + width) * vector / each / threads
        for terms in (machine.tiles.terms, machine.tiles.terms // 2, 2 * machine.tiles.terms):
            copied = 2 * (height + width) * terms * BYTES["f32"] * 9 // 8
            shape = replace(block, sides=(rows, lanes), terms=terms)
            if copied <= device.shared_bytes and shape != block:
                shapes.append((reads, -threads, shape))
    yield from (shape for *_, shape in sorted(shapes, key=lambda each: each[:2]))


def _short(machine: Machine) -> int:
    """The side of the smallest square tile: a result with a shorter one has tiles that fit it."""
    return machine.tiles.threads * (machine.tiles.rows // 2)


def _fitting(
    rows: int, lanes: int, last: int | None, machine: Machine
) -> list[tuple[tuple[Side, Side], int, bool]]:
    """Tiles of a result with a short side, which they have all of, the ones with the longest other side first.

    A copy of a block is as large as that of the largest square tile, or ``SumParts.copied`` of each row, but no more
    than there are along the ``last`` reduced axis.
    """
    device = machine.gpu()
    short = _up(min(rows, lanes))
    threads = device.block_threads
    longest = min(_up(max(rows, lanes)), 2 * machine.tiles.rows * threads // short, threads)
    tiles, seen = [], set[int]()
    for shrink in (1, 2, 4, 8):
        long = max(longest // shrink, min(_short(machine), longest))
        if long in seen:
            continue
        seen.add(long)
        height, width = (short, long) if rows <= lanes else (long, short)
        each = max(1, height * width // threads)
        along = min(each, machine.tiles.lanes, width)
        sides = _side(height, max(1, each // along)), _side(width, along)
        copied = machine.tiles.terms * 12 * machine.tiles.threads // (height + width)
        most = device.parts.copied
        most = most if last is None else min(most, _up(last))
        terms = max(machine.tiles.terms, min(most, _up(copied + 1) // 2))
        tiles.append((sides, terms, True))
    return tiles


def _side(count: int, each: int) -> Side:
    """The threads along a side, and the elements of each where it has several."""
    each = min(each, count)
    return (count // each, each) if 1 < each else (count,)


def _up(count: int) -> int:
    """The smallest power of two that is no less."""
    return 1 << max(0, count - 1).bit_length()


def _part(blocks: int, terms: int | None, unit: int, least: int, machine: Machine) -> int | None:
    """The terms of each part of so many, a multiple of a unit, of a run where it has several; None for one part."""
    if terms is None:
        return None
    each = max(least, -(-terms // max(1, machine.threads.most_blocks // blocks)))
    each = _multiple(each, unit if each <= RUN else RUN)
    return each if each < terms else None


def _multiple(count: int, unit: int) -> int:
    return -(-count // unit) * unit


def loops_of(
    node: Assignment,
    extents: Extents,
    block: BlockShape,
    factors: list[tuple[int, ...]],
    machine: Machine,
) -> tuple[list[Loop], list[Loop]]:
    """The loops over the reduced axes of a contraction: those that number its parts, and all others, the copies' last.

    Axes are used up from the outermost one on, until parts are as many as are wanted; the factors of all are set.
    """
    *others, last = node.reduced_axes()
    known = [extents.fixed(node.sizes[axis]) or 0 for axis in (*others, last)]
    wanted = 1 if block.part is None else -(-prod(known) // block.part)
    parts, rest = list[Loop](), list[Loop]()
    for axis, extent in zip(others, known, strict=False):
        if wanted == 1:
            rest.append(Loop(axis))
        elif extent <= wanted:
            parts.append(Loop(axis))
            wanted //= extent
        else:
            factors[axis] = (-(-extent // wanted),)
            parts.append(Loop(axis))
            rest.append(Loop(axis, 1))
            wanted = 1
    count = extents.fixed(node.sizes[last])
    each, unit = 0, terms_of(count, block.terms)
    if 1 < wanted:
        each = -(-known[-1] // wanted)
        each = _multiple(each, unit if each <= RUN else RUN)
    if each and each < known[-1]:
        factors[last] = _factors(each, unit)
        parts.append(Loop(last))
    else:
        factors[last] = (unit,) if count is not None and count <= RUN else (RUN // unit, unit)
    steps = [Loop(last, part) for part in range(len(factors[last]) + 1)]
    inside = [*rest, *(step for step in steps if step not in parts)]
    many = machine.gpu().parts.instead_of_smaller
    is_long = 2 < len(inside) and (0 in known or many < prod(known))
    if block.shares and is_long and len(others) <= MOST_OTHERS:
        parts, inside = inside[:1], inside[1:]
    return parts, inside


def terms_of(count: int | None, most: int) -> int:
    """The terms that a block copies at a time, of so many: no more than there are, as a power of two."""
    return min(most, _up(count)) if count else most


def _factors(part: int, unit: int) -> tuple[int, ...]:
    """The factors of an axis whose parts have so many terms, a run of them and a unit at a time."""
    if part == unit:
        return (unit,)
    return (part // unit, unit) if part <= RUN else (part // RUN, RUN // unit, unit)


def part_of_rows(node: Assignment, extents: Extents, machine: Machine) -> int | None:
    """The iterations of its outermost reduced axis in a part of a reduction whose blocks share rows, if several.

    A part has at least what a block should have to do.
    """
    rows, counts = _known(node, extents)
    if rows is None or counts is None or not node.output_axes():
        return None
    device = machine.gpu()
    if not 0 < rows < device.multiprocessors:
        return None
    unit = device.block_threads * device.vector_elements
    wanted = -(-prod(counts) // (machine.threads.most_blocks // rows))
    return _outermost(counts, _multiple(max(machine.threads.block_work, wanted), unit))


def shared_part_of_rows(node: Assignment, extents: Extents, machine: Machine) -> int | None:
    """The terms that a block adds at a time of a row that has as many parts as follow from extents; None for one part.

    Rows of several axes have one, and those that are known to be short, or enough for the device.
    """
    rows, counts = _known(node, extents)
    device = machine.gpu()
    if len(node.reduced_axes()) > 1 or not node.output_axes():
        return None
    if rows is not None and (counts is not None or device.multiprocessors <= rows):
        return None
    if counts is not None and prod(counts) <= machine.threads.block_work:
        return None
    return device.block_threads * device.vector_elements


def part_of_elements(
    node: Assignment, extents: Extents, columns: bool, machine: Machine
) -> int | None:
    """The terms of a part where each thread has an element; of columns also where it is not known how many."""
    elements, counts = _known(node, extents)
    if elements is None or counts is None:
        is_one = len(node.reduced_axes()) == 1
        return COLUMN if columns and is_one else None
    if not has_few_results(node, extents, machine):
        return None
    device = machine.gpu()
    threads = machine.threads.most_blocks * device.block_threads
    wanted = max(device.parts.unshared, -(-prod(counts) // (threads // elements)))
    return _outermost(counts, wanted if wanted <= RUN else _multiple(wanted, RUN))


def has_few_results(node: Assignment, extents: Extents, machine: Machine) -> bool:
    """Whether a result is known to have so few elements that threads with one each do not fill half of a device."""
    elements, _ = _known(node, extents)
    threads = machine.threads.most_blocks * machine.gpu().block_threads
    return elements is not None and 0 < elements < threads // 2


def _known(node: Assignment, extents: Extents) -> tuple[int | None, list[int] | None]:
    """The elements of a result, and the extents of the reduced axes, where they are known."""
    outputs = [extents.fixed(node.sizes[axis]) for axis in dict.fromkeys(node.output_axes())]
    reduced = [extents.fixed(node.sizes[axis]) for axis in node.reduced_axes()]
    return (
        None if None in outputs else prod(count or 0 for count in outputs),
        None if None in reduced else [count or 0 for count in reduced],
    )


def _outermost(counts: Sequence[int], terms: int) -> int | None:
    """The iterations of the outermost of some loops that have so many terms; None where that is all of them."""
    each = max(1, -(-terms // max(1, prod(counts[1:]))))
    return each if each < counts[0] else None
