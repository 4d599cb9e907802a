"""The blocks of contractions on a GPU, found by price: sides, threads, terms of a copy, and parts of the sum (split-K).

Example, a product of 512 by 4,096 and 4,096 by 512 elements:
    in:   rows 512, lanes 512, one reduced axis of 4,096
    out:  blocks of 128 by 128, 256 threads with 8 by 8 elements each, 16 terms a copy, parts of 512 terms; then others

Candidates are all blocks whose threads have vectors along both sides, one or more of each, or fewer elements where a
side is short; no side is longer than its extent, or shorter than a sector of memory. The price of a part of the sum is
that of its result, which is written and read again, and of one more launch. Extents that come at run time are as many
as fill a device: the host program divides the sum then, where there are too few blocks (``accumulation.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import NamedTuple

from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import USUAL, Extents
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.schedule.choose.accesses import Arrays
from ilang.core.schedule.choose.gpu_price import BlockWork, cheapest_first, price_of, with_parts
from ilang.core.schedule.choose.terms import RUN, RUNS
from ilang.core.schedule.choose.tile_cost import Price

GROUPS = (4, 2)
"""Groups of adjacent elements along a side, beside one: the numbers that are compared."""
TERMS = (16, 8, 32, 64)
"""Terms of a copy: the numbers that are compared, all sides with the first one."""
TURNS = (0.125, 0.25, 0.5, 1, 2, 4, 8)
"""Turns of a device that parts of sums are to fill: the numbers that are compared."""
BEST = 8
"""The cheapest sides, which are compared with other numbers of terms, too."""

Side = tuple[int, ...]


@record
class BlockShape:
    """A block's tile of a contraction: its sides, the terms that it copies at a time, and the terms of each part.

    A side is groups of elements, threads, and elements of a group, or the last two, or threads alone. With ``shares``,
    the number of parts is computed at run time.
    """

    sides: tuple[Side, Side]
    terms: int
    part: int | None = None
    shares: bool = False

    def threads(self) -> int:
        """The threads of a block."""
        return prod(side[len(side) == 3] for side in self.sides)

    def tile(self) -> tuple[int, int]:
        """The elements along each side."""
        height, width = map(prod, self.sides)
        return height, width


Priced = tuple[tuple[BlockShape, Price], ...]


class Sums(NamedTuple):
    """The extents of a contraction, None where one comes at run time, and what its sides read.

    Fields:
        counts: rows and lanes.
        batch: elements of the result for each of these.
        reduced: the extents of reduced axes.
        arrays: how many are read along rows, and along lanes.
        dtype: of the elements.
        is_followed: whether pointwise work on its elements ends blocks that have whole sums.
    """

    counts: tuple[int | None, int | None]
    batch: int | None
    reduced: tuple[int | None, ...]
    arrays: tuple[int, int]
    dtype: str
    is_followed: bool

    def blocks(self, block: BlockShape) -> int | None:
        """The tiles of the result."""
        sides = zip(self.counts, block.tile(), strict=True)
        return _product((self.batch, *(n if n is None else -(-n // side) for n, side in sides)))


def priced_blocks(
    node: Assignment,
    extents: Extents,
    accesses: Arrays,
    axes: tuple[int, int],
    is_followed: bool,
    machine: Machine,
) -> Priced:
    """The blocks that a contraction may have with their prices, the cheapest first.

    Args: as of ``gpu_tiles.gpu_tile``, and the ``axes`` of rows and of lanes.
    """

    def known(*axes: int) -> tuple[int | None, ...]:
        counts = (extents.fixed(node.sizes[axis]) for axis in axes)
        return tuple(None if count is None else max(1, count) for count in counts)

    first, second = (
        sum(n for index, n in accesses.items() if any(axis in part.axes() for part in index))
        for axis in axes
    )
    (rows, lanes), batch = known(*axes), [a for a in node.output_axes() if a not in axes]
    assert node.scalar.dtype is not None
    sums = Sums(
        counts=(rows, lanes),
        batch=_product(known(*batch)),
        reduced=known(*node.reduced_axes()),
        arrays=(first, second),
        dtype=node.scalar.dtype,
        is_followed=is_followed,
    )
    return by_price(sums, machine)


@cache
def by_price(sums: Sums, machine: Machine) -> Priced:
    """The blocks of some extents with their prices: all sides with one number of terms, the best with others."""
    first = _with_prices(sums, [(sides, TERMS[0]) for sides in _sides(sums, machine)], machine)
    best = [block.sides for block, _ in first[:BEST]]
    others = _with_prices(sums, [*product(best, TERMS[1:])], machine)
    priced = {**dict(first), **dict(others)}.items()
    return tuple(cheapest_first(priced, lambda price: price.at_once[0][-1] + price.merged))


def _cycles(priced: tuple[BlockShape, Price]) -> float:
    return priced[1].cycles()


def _with_prices(
    sums: Sums, shapes: Sequence[tuple[tuple[Side, Side], int]], machine: Machine
) -> list[tuple[BlockShape, Price]]:
    """Blocks of some sides and terms that a device has room for, each with the cheapest parts of the sum."""
    cheapest = list[tuple[BlockShape, Price]]()
    for sides, terms in shapes:
        block = BlockShape(sides, min(terms, up(sums.reduced[-1] or terms)))
        priced = [
            (each, price)
            for each in _parts(sums, block, machine)
            if (price := price_of_block(sums, each, machine)) is not None
        ]
        cheapest += [min(priced, key=_cycles)] if priced else []
    return sorted(cheapest, key=_cycles)


def _sides(sums: Sums, machine: Machine) -> Iterator[tuple[Side, Side]]:
    """The sides of blocks of a warp or more, and of no more sums than registers hold; high ones before broad ones.

    Blocks of rows shorter than a sector have a row for each thread: else threads would not store side by side.
    """
    device, sector = machine.gpu(), machine.gpu().sector_bytes // BYTES[sums.dtype]
    rows, lanes = (device.block_threads if n is None else up(n) for n in sums.counts)
    tall, wide = min(machine.tiles.rows, rows), min(machine.vector_lanes(sums.dtype), lanes)
    is_short = min(rows, lanes) <= 2 * device.warp
    high, broad = (
        [
            side
            for side in _along(each if is_short else each[:1], device.block_threads)
            if min(count, sector) <= prod(side) <= count
        ]
        for count, each in ((rows, (tall, tall // 2, 1)), (lanes, (wide, 1)))
    )
    fewest = min(device.warp, rows * lanes)
    for sides in product(sorted(high, key=prod, reverse=True), broad):
        block = BlockShape(sides, 1)
        threads, each = block.threads(), prod(block.tile()) // block.threads()
        is_held = each <= machine.tiles.most_elements and (sector <= lanes or len(sides[0]) == 1)
        if is_held and fewest <= threads <= 2 * device.block_threads:
            yield sides


def _along(counts: Sequence[int], most: int) -> Iterator[Side]:
    """The sides of a block of up to ``most`` threads with so many elements each, or groups of the first number."""
    for threads in (1 << n for n in range(most.bit_length())):
        if 1 < counts[0]:
            yield from ((groups, threads, counts[0]) for groups in GROUPS)
        yield from ((threads, each) if 1 < each else (threads,) for each in counts if each)


def _parts(sums: Sums, block: BlockShape, machine: Machine) -> Iterator[BlockShape]:
    """A block with the whole sum, and with parts of it, that together fill a device so and so often.

    Parts have a number that is computed at run time where extents are known only then.
    """
    blocks, terms = sums.blocks(block), _product(sums.reduced)
    device = machine.gpu()
    if blocks is None or terms is None:
        yield replace(block, shares=blocks is None or blocks < device.multiprocessors)
        return
    yield block
    wanted = [int(turns * device.multiprocessors) // blocks for turns in TURNS]
    for each in dict.fromkeys(-(-terms // count) for count in wanted if 1 < count):
        part = multiple(each, block.terms if each <= RUN else RUN)
        if part < terms:
            yield replace(block, part=part)


def price_of_block(sums: Sums, block: BlockShape, machine: Machine) -> Price | None:
    """The price of a block for sums of some extents; None where a device has no room for it."""
    device, size = machine.gpu(), BYTES[sums.dtype]
    threads, tile, vector = block.threads(), block.tile(), machine.vector_lanes(sums.dtype)
    sides = [
        (count, prod(side) // side[len(side) == 3])
        for count, side in zip(sums.arrays, block.sides, strict=True)
    ]
    *others, last = (USUAL if count is None else count for count in sums.reduced)
    steps = -(-block.part // block.terms) if block.part else prod(others) * -(-last // block.terms)
    copied = [
        block.terms * n for count, n in zip(sums.arrays, tile, strict=True) for _ in range(count)
    ]
    shared = sum(copied) * size * 9 // 8
    doubled = block.terms < last and block.part != block.terms and 2 * shared <= device.shared_bytes
    terms = block.part or _product(sums.reduced)
    is_wide = size == BYTES["f32"] and (terms is None or RUN * RUNS < terms)
    each = prod(tile) // threads
    work = BlockWork(
        threads=threads,
        sums=each,
        held=each * size // device.register_bytes * (4 if is_wide else 2),
        each=block.terms,
        words=sum(n * side for n, side in sides) * size // device.register_bytes,
        loads=sum(n * -(-side // vector) for n, side in sides),
        copied=copied,
        steps=steps,
        shared=shared * (2 if doubled else 1),
        stored=prod(tile),
        doubled=doubled,
        size=size,
    )
    parts = 1 if block.part is None else -(-prod(n or 1 for n in sums.reduced) // block.part)
    blocks = None if block.shares else sums.blocks(block)
    price = price_of(work, None if blocks is None else blocks * parts, prod(tile), machine)
    if price is None or parts == 1:
        return price
    elements = _product((*sums.counts, sums.batch)) or 1
    return with_parts(price, elements, parts, size, machine, is_followed=sums.is_followed)


def up(count: int) -> int:
    """The smallest power of two that is no less."""
    return 1 << max(0, count - 1).bit_length()


def multiple(count: int, unit: int) -> int:
    """The smallest multiple of a unit that is no less."""
    return -(-count // unit) * unit


def _product(counts: Sequence[int | None]) -> int | None:
    """The product of some extents, None where one is not known."""
    known = [count for count in counts if count is not None]
    return prod(known) if len(known) == len(counts) else None
