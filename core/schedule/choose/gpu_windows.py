"""Convolutions by blocks of a GPU: contractions of which one operand is read through windows.

Example, a convolution of 64 channels in windows of 3 by 3:
    in:   t = in0[n,c,y+u,x+v] * in1[o,c,u,v];  out = sum t[n,o,y,x,c,u,v] over c u v
    out:  out | o:2:8:4,y:4,x:2:4:4,c:4 | n o y x c c' u v o' x' y' x'' o'' o''' x''' 0
          t   | ... | n o y x c 0 1 c' u v o' x' y' x'' o'' o''' x'''
          y', x'' and o'' are for threads; o', x', o''' and x''' unrolled

Rows are an axis that the windows lack, lanes the last axis that all other operands lack, and beside them the one before
it where it moves windows, too: neighbors share what their windows have in common. A block copies the elements of all of
its windows, so many terms at a time, and the other operands; padding is the zeros that copies have past the ends of
dimensions. Of the tiles whose copies a block has room for, the one of the least price is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from ilang.core.dtype import BYTES
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Role
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.schedule.choose.accesses import Access, Arrays
from ilang.core.schedule.choose.gpu_price import BlockWork, price_of
from ilang.core.schedule.choose.terms import RUN, RUNS
from ilang.core.schedule.choose.tile import BlockTile
from ilang.core.schedule.choose.tile_cost import Price

GROUPS = (1, 2)
"""Groups of neighbors along a side of a tile: the numbers that are compared."""
STRIPS = 4
"""Iterations of the outermost loop over terms whose sums are added in f32, where it is not known to have few."""


class _Windows(NamedTuple):
    """The operands and axes of a convolution.

    Fields:
        windows: the index that is read through windows.
        others: the indices of the other operands.
        rows, lanes: the axes of a tile.
        across: the axis before the lanes that moves windows; None where there is none.
        folded: the reduced axis of which a block copies a part at a time; None where all are taps.
        taps: the extents of the reduced axes that windows have.
    """

    windows: Access
    others: tuple[Access, ...]
    rows: int
    lanes: int
    across: int | None
    folded: int | None
    taps: dict[int, int]


class _WindowTile(NamedTuple):
    """The factors of a tile: groups and threads of rows, threads across, groups and threads of lanes, and terms.

    A group has as many neighbors ``along`` as a vector.
    """

    rows: tuple[int, int]
    across: int
    lanes: tuple[int, int]
    chunk: int
    along: int

    def threads(self) -> int:
        """The threads of a block."""
        return self.rows[1] * self.across * self.lanes[1]

    def inside(self, operands: _Windows) -> dict[int, int]:
        """The iterations of each axis that a block has at a time."""
        sides = {
            operands.rows: prod(self.rows) * self.along,
            operands.lanes: prod(self.lanes) * self.along,
        }
        if operands.across is not None:
            sides[operands.across] = self.across
        if operands.folded is not None:
            sides[operands.folded] = self.chunk
        return {**operands.taps, **sides}


def windows_tiles(
    node: Assignment, extents: Extents, accesses: Arrays, machine: Machine
) -> Iterator[tuple[BlockTile, Price]]:
    """The tiles of a convolution whose copies fit, with their prices, the cheapest first; none of anything else.

    Args:
        node: an assignment.
        extents: of the program.
        accesses: the indices of what it reads, each with the number of arrays.
        machine: what the blocks belong to.
    """
    operands = _windows(node, extents, accesses)
    if operands is None:
        return
    priced = [
        (price.cycles(), number, tile, doubled, price)
        for number, tile in enumerate(_tiles(node, extents, operands, machine))
        for doubled in (True, False)
        if (price := _price(node, extents, operands, tile, machine, doubled)) is not None
    ]
    for _, _, tile, doubled, price in sorted(priced, key=lambda each: each[:2]):
        yield _loops(node, extents, operands, tile, doubled), price


def _windows(node: Assignment, extents: Extents, accesses: Arrays) -> _Windows | None:
    """The operands and axes of a convolution; None of any other sum."""
    if node.acc != "+" or node.base is not None or node.guards or node.scalar.dtype != "f32":
        return None
    if any(part.axis() is None for part in node.target) or any(accesses[a] > 1 for a in accesses):
        return None
    if any(part.looked or part.sizes for index in accesses for part in index):
        return None
    through = [
        index for index in accesses if any(p.axis() is None and p.variables() for p in index)
    ]
    others = tuple(index for index in accesses if index not in through)
    outputs, reduced = node.output_axes(), node.reduced_axes()
    if len(through) != 1 or not others or len(set(outputs)) < len(outputs) or not reduced:
        return None
    (windows,) = through
    if any(c < 0 for part in windows for c, _ in part.steps()):
        return None
    read = {axis for part in windows for axis in part.variables()}
    beside = {axis for index in others for part in index for axis in part.variables()}
    large = [axis for axis in outputs if not extents.is_small(node.sizes[axis])]
    rows = [axis for axis in large if axis not in read]
    lanes = [axis for axis in large if axis not in beside]
    moving = {axis for part in windows if part.axis() is None for axis in part.variables()}
    taps = {axis: extents.fixed(node.sizes[axis]) or 0 for axis in reduced if axis in moving}
    terms = [axis for axis in reduced if axis not in moving]
    if not rows or not lanes or 0 in taps.values() or prod(taps.values()) > RUN or len(terms) > 1:
        return None
    if lanes[-1] not in moving or any(rows[-1] not in _axes(index) for index in others):
        return None
    across = lanes[-2] if 1 < len(lanes) and lanes[-2] in moving else None
    return _Windows(windows, others, rows[-1], lanes[-1], across, terms[0] if terms else None, taps)


def _axes(index: Access) -> set[int]:
    return {axis for part in index for axis in part.variables()}


def _tiles(
    node: Assignment, extents: Extents, operands: _Windows, machine: Machine
) -> Iterator[_WindowTile]:
    """The tiles that are compared: no larger along an axis than the next power of two."""
    device = machine.gpu()
    warp, most = device.warp, device.block_threads
    along = device.vector_elements

    def most_of(axis: int | None) -> int:
        extent = 1 if axis is None else extents.fixed(node.sizes[axis])
        return most if extent is None else 1 << max(0, extent - 1).bit_length()

    room = RUN // prod(operands.taps.values())
    chunks = [n for n in (16, 8, 4, 2, 1) if n <= max(1, min(room, most_of(operands.folded)))]
    powers = (1, 2, 4, 8, 16, 32)
    for groups, rows, across, columns, lanes, terms in product(
        GROUPS, powers, powers, GROUPS, powers, chunks if operands.folded is not None else [1]
    ):
        tile = _WindowTile((groups, rows), across, (columns, lanes), terms, along)
        inside = tile.inside(operands)
        sides = (
            operands.rows,
            operands.lanes,
            *(() if operands.across is None else (operands.across,)),
        )
        is_larger = any(max(along, most_of(axis)) < inside[axis] for axis in sides)
        if warp <= tile.threads() <= most and not is_larger and (across == 1 or len(sides) > 2):
            yield tile


def _price(
    node: Assignment,
    extents: Extents,
    operands: _Windows,
    tile: _WindowTile,
    machine: Machine,
    doubled: bool,
) -> Price | None:
    """The price of a tile; None where a block has no room for its copies."""
    device = machine.gpu()
    inside, size = tile.inside(operands), BYTES["f32"]
    copies = [
        [1 + sum(c * (inside.get(axis, 1) - 1) for c, axis in part.steps()) for part in index]
        for index in (operands.windows, *operands.others)
    ]
    shared = sum(map(prod, copies)) * size * 9 // 8 * (2 if doubled else 1)
    sector = device.sector_bytes // size
    moved = [prod(before) * sector * -(-(row + sector - 1) // sector) for *before, row in copies]
    counts = {axis: extents.fixed(node.sizes[axis]) for axis in node.output_axes()}
    known = {axis: count for axis, count in counts.items() if count is not None}
    blocks = prod(-(-count // inside.get(axis, 1)) for axis, count in known.items())
    terms = None if operands.folded is None else extents.fixed(node.sizes[operands.folded])
    last = next(part for part in operands.windows if operands.lanes in part.variables())
    taps = prod(n for axis, n in operands.taps.items() if axis in last.variables())
    step, columns = last.coefficient(operands.lanes), tile.lanes[0]
    row = columns * (step * (tile.along - 1) + taps) / taps
    met = _met(tile, step, copies[0], machine)
    sums = tile.rows[0] * columns * tile.along**2
    elements = prod(inside[axis] for axis in counts if axis in inside)
    work = BlockWork(
        threads=tile.threads(),
        sums=sums,
        held=2 * sums,
        each=tile.chunk * prod(operands.taps.values()),
        words=tile.rows[0] * tile.along + row * met,
        loads=tile.rows[0] + row,
        copied=moved,
        steps=1 if operands.folded is None else -(-(terms or RUN) // tile.chunk),
        shared=shared,
        stored=elements,
        doubled=doubled,
    )
    return price_of(work, blocks if len(known) == len(counts) else None, elements, machine)


def _met(tile: _WindowTile, step: int, dims: Sequence[int], machine: Machine) -> int:
    """The threads of a warp that read other words of one bank: they go along lanes after rows, then across."""
    device = machine.gpu()
    words = {
        step * tile.along * (thread // tile.rows[1] % tile.lanes[1])
        + dims[-1] * step * (thread // tile.rows[1] // tile.lanes[1])
        for thread in range(device.warp)
    }
    banks = [word % device.banks for word in words]
    return max(map(banks.count, banks))


def _loops(
    node: Assignment, extents: Extents, operands: _Windows, tile: _WindowTile, doubled: bool
) -> BlockTile:
    """The loops of a tile: blocks, terms, taps, threads with lanes before rows, and the elements of each."""
    factors: list[tuple[int, ...]] = [()] * len(node.axes)
    sides = ((operands.rows, tile.rows), (operands.lanes, tile.lanes))
    inner: list[tuple[Loop, Role]] = []
    for axis, (groups, threads) in sides:
        factors[axis] = (groups, threads, tile.along) if 1 < groups else (threads, tile.along)
        inner += [(Loop(axis, 1), "u")] if 1 < groups else []
    if operands.across is not None:
        factors[operands.across] = (tile.across,)
        inner.append((Loop(operands.across, 1), "t"))
    inner += [(Loop(axis, len(factors[axis]) - 1), "t") for axis, _ in reversed(sides)]
    inner += [(Loop(axis, len(factors[axis])), "u") for axis, _ in sides]
    outer = [Loop(axis) for axis in node.output_axes()]
    terms: list[Loop] = []
    if operands.folded is not None:
        count = extents.fixed(node.sizes[operands.folded])
        few = count is not None and count <= RUNS * tile.chunk
        factors[operands.folded] = (tile.chunk,) if few else (RUNS // STRIPS, tile.chunk)
        parts = [Loop(operands.folded, part) for part in range(len(factors[operands.folded]) + 1)]
        outer += parts[:-1]
        terms.append(parts[-1])
    terms += [Loop(axis) for axis in operands.taps]
    plain: list[Role] = ["" for _ in (*outer, *terms)]
    return BlockTile(
        tuple(factors),
        (*outer, *terms, *(loop for loop, _ in inner)),
        (*plain, *(role for _, role in inner)),
        len(outer),
        strided=(operands.windows, *operands.others),
        doubled=doubled and operands.folded is not None,
    )
