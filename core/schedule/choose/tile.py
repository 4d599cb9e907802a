"""Contractions that are computed tile by tile, and their loops.

A reduction has reuse where two of its output axes are read apart: one by operands that lack the other. A tile of both
axes then reads each element once for many results: its elements stay in registers (``accumulation.py``), and a copy of
what runs along the lanes stands packed beside them.

    order: other output axes, j, windows, i, reduced parts, i', j'        j: lanes, i: rows

Lanes are along the last long axis of the result. Axes that move windows of what is packed stand inside the copy, which
has the windows of all: so are the weights of a convolution in its gradient, of which each is a sum over all pixels.

The rows of a convolution walk a window of an operand: its lanes are along another axis than those of the window, so
that what is packed is the other operand, once, and each block of windows is copied once, padding included.
Where one side of a convolution has few channels, these are rows if its lanes move windows, and its windows are if they
are all that is left, as in the gradient of its weights: else every read would be tested, and none used twice.

    order: axes of both, axes of the window's operand, blocks of windows, j, others, i, reduced parts, i', j'

Where extents are known a tile fits them: few lanes leave registers to more rows, rows come in equal parts, and sums go
over whole axes, the last ones first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from ilang.core.calculus.affine import variables_of
from ilang.core.dtype import FLOATS
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Nest, Role
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.record import record, replace
from ilang.core.schedule.choose.accesses import Access, Accesses, loop_order, reads_of
from ilang.core.schedule.choose.loops import priced_loops
from ilang.core.schedule.choose.packing import TileAxes
from ilang.core.schedule.choose.terms import MOST_TERMS, RUN
from ilang.core.schedule.choose.tile_cost import Price, TilePrice
from ilang.core.schedule.registers import balanced

REDUCED = {1: (512,), 2: (32, 16), 3: (32, 4, 4), 4: (8, 4, 4, 4)}
"""Factors of one to four reduced axes, whose product is ``MOST_TERMS``."""

Factors = tuple[tuple[int, ...], ...]


@record
class RowLanes:
    """The lanes of a row on a GPU, the adjacent elements that each moves at a time, and their role: a warp's or not."""

    lanes: int
    vector: int
    role: Role


@record
class BlockTile:
    """The loops of an assignment whose innermost ones are a block's; ``depth`` of them stand outside the copies.

    Of what it reads, a copy is made where an access lacks one of its axes, or runs across. Blocks fill copies again and
    again where there is ``room`` for two of each, in bytes; none where they fill them once. ``is_row`` says that the
    threads of a block share each element of a reduction along memory. Where threads would read in strides, ``strided``
    has all accesses that are copied. Copies have two buffers where ``doubled`` says so. What a row is made of has the
    same ``lanes``.
    """

    factors: Factors
    order: tuple[Loop, ...]
    roles: tuple[Role, ...]
    depth: int
    room: int = 0
    is_row: bool = False
    strided: tuple[Access, ...] | None = None
    doubled: bool = False
    lanes: RowLanes | None = None


@record
class Tiling:
    """The axes and the splits of a tiled reduction; ``outer`` are its loops outside the tile's rows and lanes.

    Of a tile of ``windows``, what its rows read is copied, and each copy stands outside the loops that do not walk it.
    Tiles that have all lanes inside of a block of rows, since others have the same blocks, are ``is_by_rows``. A tiling
    that a price chose has all that were compared in ``among``, the cheapest first; loops without it take less where it
    ``is_dear``.
    """

    rows: int
    lanes: int
    factors: tuple[tuple[int, ...], ...]
    outer: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    windows: bool = False
    is_by_rows: bool = False
    is_dear: bool = False
    among: tuple[tuple[Tiling, Price], ...] = ()

    def order(self) -> tuple[Loop, ...]:
        """All loops."""
        return self.outer + self.inner

    def axes(self, lengths: Mapping[int, int], machine: Machine) -> TileAxes:
        """The axes of this tile, where those of the result have these lengths, as far as they are known."""
        many, vector = machine.tiles.many_lanes, machine.vector_lanes("f32")
        return TileAxes(self.rows, self.lanes, self.windows, lengths, many, vector)

    def by_rows(self) -> Tiling:
        """This tiling with all lanes inside a block of rows: what runs along the lanes is packed for all blocks."""
        tiled = (Loop(self.rows), Loop(self.lanes))
        others = (loop for loop in self.outer if loop not in tiled)
        return replace(self, outer=(*others, *tiled), is_by_rows=not self.windows)


TileOf = Callable[[Assignment, Accesses], Tiling | None]
"""The choice of a tiling for a reduction that has some accesses: ``tiling``, for the extents of a program."""


@record
class _Contraction:
    """A reduction that may be tiled: its extents, the indices of all that it reads, and whose registers hold tiles."""

    node: Assignment
    extents: Extents
    accesses: tuple[Access, ...]
    machine: Machine
    weights: Accesses

    def extent(self, axis: int) -> int | None:
        """The extent of an axis, None where it is known at run time only."""
        return self.extents.fixed(self.node.sizes[axis])

    def is_small(self, axis: int) -> bool:
        """Whether the extent of an axis is small, as far as is known."""
        return self.extents.is_small(self.node.sizes[axis])

    def is_known(self) -> bool:
        """Whether prices are made for it: extents are numbers, each index is one axis, no device computes it."""
        if self.machine.core is None:
            return False
        parts = (part for index in (*self.accesses, self.node.target) for part in index)
        lengths = [self.extent(axis) for axis in range(len(self.node.axes))]
        return all(lengths) and all(
            part.axis() is not None or not part.variables() for part in parts
        )

    def price(self, tile: Tiling) -> Price:
        """The price of a tiling; the extents are known."""
        node, nest = self.node, Nest(tile.factors, tile.order(), ())
        extents = [self.extent(axis) or 0 for axis in range(len(node.axes))]
        axes = tile.axes({axis: extents[axis] for axis in node.output_axes()}, self.machine)
        return TilePrice(node, extents, nest, axes, self.machine).price(self.accesses)

    def price_without(self) -> Price:
        """The price of loops without a tile; the extents are known."""
        order = loop_order(self.node, self.weights, self.machine)
        given = (self.node, self.extents, order, self.accesses, self.machine)
        return priced_loops(*given)[0][1]

    def has_lanes(self, axis: int) -> bool:
        """Whether an axis that moves windows is long enough for lanes: half a vector of 8 floats, or more."""
        extent = self.extent(axis)
        return extent is not None and 2 * extent >= self.machine.small_extent and self.slides(axis)

    def slides(self, axis: int) -> bool:
        """Whether an axis moves windows forwards, and does nothing else."""
        parts = [p for index in self.accesses for p in index if axis in p.variables()]
        return all(part.axis() is None and all(c > 0 for c, _ in part.steps()) for part in parts)


def tiling(
    node: Assignment, accesses: Accesses, extents: Extents, machine: Machine, priced: bool = False
) -> Tiling | None:
    """The tiling of a reduction, from the accesses of its innermost iteration; None where nothing is reused.

    Args:
        node: an assignment.
        accesses: the indices, over its axes, of all that it reads and of its result.
        extents: of the program.
        machine: what the registers belong to.
        priced: take the cheapest of many, where all extents are known, in place of what rules say.
    """
    reduced = node.reduced_axes()
    if node.acc != "+" or node.scalar.dtype not in FLOATS or node.base is not None:
        return None
    if not 0 < len(reduced) <= max(REDUCED):
        return None
    if any(part.variables() and part.axis() is None for part in node.target):
        return None
    reads = tuple(reads_of(node, accesses))
    contraction = _Contraction(node, extents, reads, machine, accesses)
    if any(part.looked for index in contraction.accesses for part in index):
        return None
    sides = _rows_and_lanes(contraction)
    priced &= contraction.is_known()
    if sides is None:
        return cheapest(contraction, None) if priced else None
    rows, lanes = sides
    width = contraction.extent(rows)
    thin = contraction.is_small(rows)
    thin |= width is not None and width < machine.vector_lanes("f32")
    if contraction.slides(lanes) and not thin:
        return _windows(contraction, lanes, rows)
    if contraction.slides(rows):
        return _windows(contraction, rows, lanes)
    chosen = _tiling(contraction, rows, lanes)
    return cheapest(contraction, chosen) if priced else chosen


def _rows_and_lanes(contraction: _Contraction) -> tuple[int, int] | None:
    """The axes of the rows and of the lanes of a tile; None where nothing is reused.

    Lanes go along the last output axis that is not small. Rows go along an output axis that no operand has beside the
    lanes: what one operand has of a row is used for all lanes, what the other has of a lane for all rows. A small
    axis will do for rows if windows slide, or all extents are known; for lanes if it moves windows and all are small.
    """
    node = contraction.node
    outputs = [axis for axis in node.output_axes() if not contraction.is_small(axis)]
    if not outputs:
        outputs = [axis for axis in node.output_axes() if contraction.has_lanes(axis)]
    if not outputs:
        return None
    lanes = outputs[-1]
    accessed = [variables_of(index) for index in contraction.accesses]
    along = [axes for axes in accessed if lanes in axes]
    across = [axes for axes in accessed if lanes not in axes]
    apart = [
        axis
        for axis in node.output_axes()
        if any(axis in axes for axes in across) and not any(axis in axes for axes in along)
    ]
    rows = [axis for axis in apart if axis in outputs[:-1]] or [
        axis
        for axis in apart
        if contraction.extent(axis) != 1
        and (contraction.slides(lanes) or contraction.slides(axis) or contraction.is_known())
    ]
    return (rows[-1], lanes) if along and rows else None


def cheapest(contraction: _Contraction, rule: Tiling | None) -> Tiling | None:
    """The tiling of the least price, that of the rule among them.

    First each pair of axes, as rows and as lanes, with several sizes of tiles and splits of the sum, in two orders;
    then, of the best three, each loop, those of the sum among them, is moved to where the price is least, until nothing
    is gained. Rules have no tiling where all operands have the last axis of the result: loops stay whole, unless a tile
    is cheaper.
    """
    prices = {} if rule is None else {rule: contraction.price(rule)}
    first = {each: contraction.price(each) for each in candidates(contraction)}
    best = sorted(first.items(), key=_cycles)[:3]
    prices |= first | dict(_moved(contraction, *each) for each in best)
    among = tuple(sorted(prices.items(), key=_cycles))
    is_dear = bool(among) and contraction.price_without().cycles() <= _cycles(among[0])
    if not among or (rule is None and is_dear):
        return None
    return replace(among[0][0], among=among, is_dear=is_dear)


def _cycles(priced: tuple[Tiling, Price]) -> float:
    return priced[1].cycles()


def candidates(contraction: _Contraction) -> Iterator[Tiling]:
    """Tilings with each output axis along the lanes, and each that what is read there lacks as rows."""
    node, tiles = contraction.node, contraction.machine.tiles
    accessed = [variables_of(index) for index in contraction.accesses]
    outputs = [axis for axis in node.output_axes() if contraction.extent(axis) != 1]
    vector = contraction.machine.vector_lanes("f32")
    for lanes in (axis for axis in outputs if not contraction.is_small(axis)):
        beside = {axis for axes in accessed if lanes in axes for axis in axes}
        widths = {
            narrowed(contraction.extent(lanes), n, contraction.machine)
            for n in range(vector, tiles.lanes + 1, vector)
        }
        for rows in (axis for axis in outputs if beside and axis not in beside):
            height = contraction.extent(rows)
            for width in sorted(widths):
                heights = {_height(height, tiles.rows, n) for n in (1, tiles.lanes // width)}
                for terms in _splits(contraction, rows, lanes):
                    for high in sorted(heights):
                        yield from _in_orders(contraction, rows, lanes, (high, width), terms)


def _splits(
    contraction: _Contraction, rows: int, lanes: int
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Splits of the reduced axes: each of them has the most terms of a tile, or of several a line of memory."""
    along, reduced = _along_memory(contraction, rows, lanes), contraction.node.reduced_axes()
    splits = [_terms(contraction, longest) for longest in dict.fromkeys((along, *reduced))]
    if 1 < len(reduced) and any(map(any, splits)):
        splits += [_terms_in_lines(contraction, axis) for axis in reduced]
    yield from dict.fromkeys(map(tuple, splits))


def _in_orders(
    contraction: _Contraction,
    rows: int,
    lanes: int,
    shape: tuple[int, int],
    terms: tuple[tuple[int, ...], ...],
) -> Iterator[Tiling]:
    """A tile of rows and lanes, blocks of rows innermost, and blocks of lanes around all others or inside of them.

    Of several reduced axes with blocks, these stand around the blocks of rows, too.
    """
    node, factors = contraction.node, [*terms]
    factors[rows], factors[lanes] = (shape[:1], shape[1:])
    others = [Loop(axis) for axis in node.output_axes() if axis not in (rows, lanes)]
    inner = _inner(contraction, factors, rows, lanes)
    around = [loop for loop in inner if terms[loop.axis] and not loop.part]
    for outer in dict.fromkeys(((Loop(lanes), *others), (*others, Loop(lanes)))):
        yield Tiling(rows, lanes, tuple(factors), (*outer, Loop(rows)), inner)
    if around and 1 < len(node.reduced_axes()):
        tile = tuple(loop for loop in inner if loop not in around)
        outer = (Loop(lanes), *others, *around, Loop(rows))
        yield Tiling(rows, lanes, tuple(factors), outer, tile)


def _moved(contraction: _Contraction, tile: Tiling, price: Price) -> tuple[Tiling, Price]:
    """A tiling with each loop outside the tile where the price is least, those of the sum among them."""
    reduced = contraction.node.reduced_axes()
    while True:
        others = (
            replace(tile, outer=outer, inner=inner) for outer, inner in _orders(tile, reduced)
        )
        priced = ((each, contraction.price(each)) for each in others)
        best = min(priced, key=_cycles, default=(tile, price))
        if price.cycles() <= best[1].cycles() * 1.001:
            return tile, price
        tile, price = best


def _orders(
    tile: Tiling, reduced: Sequence[int]
) -> Iterator[tuple[tuple[Loop, ...], tuple[Loop, ...]]]:
    """The loops outside a tile and in it, with one of them elsewhere.

    Loops of the sum may stand around others: then what is packed is a block of terms, which all tiles around it add to
    results in memory. One loop of the sum stays in the tile, and the first of all is of the result, for threads.
    """
    outer, inner = tile.outer, tile.inner
    terms = [loop for loop in inner if loop.axis in reduced]
    moves = [(loop, tuple(other for other in outer if other != loop), inner) for loop in outer]
    moves += [
        (loop, outer, tuple(other for other in inner if other != loop))
        for loop in terms
        if not loop.part and 1 < len(terms)
    ]
    for loop, rest, left in moves:
        for at in range(len(rest) + 1):
            order = (*rest[:at], loop, *rest[at:])
            if order[0].axis not in reduced and (order, left) != (outer, inner):
                yield order, left


def _height(extent: int | None, rows: int, times: int) -> int:
    """The rows of a tile that may have so many, or so many times more where it is known how many there are.

    A tile of many is some times 4 to 6 rows, of which registers of narrower vectors hold two each.
    """
    if extent is None:
        return rows
    least = balanced(extent, rows * times)
    fit = (n for n in range(least, 2 * least) if n <= rows or any(n % d == 0 for d in range(4, 7)))
    return next(fit, least)


def narrowed(extent: int | None, lanes: int, machine: Machine) -> int:
    """The lanes of a tile that may have so many: no more vectors than a short row has, each a line of f32."""
    vector = machine.vector_lanes("f32")
    return min(lanes, -(-extent // vector) * vector) if extent else lanes


def _terms_in_lines(contraction: _Contraction, along: int) -> list[tuple[int, ...]]:
    """Splits of the reduced axes: one has the terms of a line of memory, others as many as a tile sums, each."""
    factors: list[tuple[int, ...]] = [()] * len(contraction.node.axes)
    for axis in contraction.node.reduced_axes():
        extent, line = contraction.extent(axis), contraction.machine.vector_lanes("f32")
        part = balanced(extent, line if axis == along else MOST_TERMS)
        factors[axis] = (part,) if part != extent else ()
    return factors


def _terms(contraction: _Contraction, longest: int | None = None) -> list[tuple[int, ...]]:
    """Splits of the reduced axes: a tile sums ``MOST_TERMS`` of them at most. A shorter axis has no split.

    Where lengths are known the last axis is whole, if it may be beside others that are short, and then those before it,
    as many as a tile sums. Else the first axis has the largest factor. Before all others comes the one that is to be
    the ``longest``.
    """
    node = contraction.node
    reduced = node.reduced_axes()
    factors: list[tuple[int, ...]] = [()] * len(node.axes)
    lengths = [contraction.extent(axis) for axis in reduced]
    if prod(extent or MOST_TERMS + 1 for extent in lengths) <= MOST_TERMS:
        return factors
    if all(lengths):
        left = MOST_TERMS
        order = sorted(reduced, key=lambda axis: (axis == longest, axis), reverse=True)
        for number, axis in enumerate(order, 1):
            others = prod(contraction.extent(other) or 1 for other in order[number:])
            room = left // others if others <= left // RUN else left
            part = balanced(contraction.extent(axis), room)
            factors[axis] = (part,) if contraction.extent(axis) != part else ()
            left = max(1, left // part)
        return factors
    most = list(REDUCED[len(reduced)])
    if longest in reduced:
        most.insert(reduced.index(longest), most.pop(0))
    for axis, extent, factor in zip(reduced, lengths, most, strict=True):
        factors[axis] = (factor,) if extent is None or extent > factor else ()
    return factors


def _along_memory(contraction: _Contraction, rows: int, lanes: int) -> int | None:
    """The long summed axis along which what the rows read is walked element by element, if there is one."""
    node, accesses = contraction.node, contraction.accesses
    reduced = node.reduced_axes()
    read = [index for index in accesses if _has(index, rows) and not _has(index, lanes)]
    along = (axis for index in read for axis in index[-1].variables() if axis in reduced)
    return next((axis for axis in along if not contraction.is_small(axis)), None)


def _tiling(contraction: _Contraction, rows: int, lanes: int) -> Tiling:
    """A tile of rows and lanes; axes that move windows of what is packed stand inside the copy, which has them all."""
    node, accesses, machine = contraction.node, contraction.accesses, contraction.machine
    factors = _terms(contraction, _along_memory(contraction, rows, lanes))
    height, width = (contraction.extent(axis) for axis in (rows, lanes))
    narrow = narrowed(width, machine.tiles.lanes, machine)
    # Elsewhere many rows would be lines of one place in the cache.
    along = all(_is_last(index, rows) for index in accesses if _has(index, rows))
    is_dense = along or contraction.is_small(rows)
    times = machine.tiles.lanes // narrow if is_dense else 1
    factors[rows] = (_height(height, machine.tiles.rows, times),)
    factors[lanes] = (narrow,)
    others = [axis for axis in node.output_axes() if axis not in (rows, lanes)]
    packed = {a for index in accesses if _has(index, lanes) for a in variables_of(index)}
    moved = [axis for axis in others if axis in packed and contraction.slides(axis)]
    around = (Loop(axis) for axis in others if axis in packed and axis not in moved)
    unpacked = (Loop(axis) for axis in others if axis not in packed)
    outer = (*around, Loop(lanes), *map(Loop, moved), *unpacked, Loop(rows))
    return Tiling(rows, lanes, tuple(factors), outer, _inner(contraction, factors, rows, lanes))


def _inner(
    contraction: _Contraction, factors: Sequence[tuple[int, ...]], rows: int, lanes: int
) -> tuple[Loop, ...]:
    """The loops of a tile: parts of the reduced axes, that along which rows read memory last, rows, lanes."""
    along, reduced = _along_memory(contraction, rows, lanes), contraction.node.reduced_axes()
    parts = sorted(reduced, key=lambda axis: axis == along)
    return (
        *(Loop(axis) for axis in reduced if factors[axis]),
        *(Loop(axis, len(factors[axis])) for axis in parts),
        Loop(rows, 1),
        Loop(lanes, 1),
    )


def _windows(contraction: _Contraction, rows: int, lanes: int) -> Tiling:
    """A tile whose rows move windows of an operand; where these are short, what is summed is long."""
    node, accesses, machine = contraction.node, contraction.accesses, contraction.machine
    short = contraction.is_small(rows)
    longest = _along_memory(contraction, rows, lanes) if short else None
    factors = _terms(contraction, longest)
    width = contraction.extent(lanes)
    tiles = machine.tiles
    narrow = narrowed(width, tiles.window_lanes, machine)
    factors[lanes] = (narrow,)
    height = contraction.extent(rows)
    if short or _is_last(node.target, rows):  # vectors transpose so many rows
        height = None
    factors[rows] = (_height(height, tiles.window_rows, tiles.window_lanes // narrow),)
    others = [axis for axis in node.output_axes() if axis not in (rows, lanes)]
    several = _short_windows(contraction, rows, lanes) if short else ()
    if several:  # all of them are rows
        factors[rows] = ()
        outer = (*(Loop(axis) for axis in others if axis not in several), Loop(lanes))
        inner = _inner(contraction, factors, rows, lanes)
        inner = (*inner[:-2], *map(Loop, several), inner[-1])
        return Tiling(rows, lanes, tuple(factors), outer, inner, True)
    packed, moved = (
        {a for index in accesses if _has(index, axis) for a in variables_of(index)}
        for axis in (lanes, rows)
    )
    blocks = [axis for axis in others if axis in moved - packed and contraction.slides(axis)]
    blocks = [axis for axis in blocks[-1:] if not contraction.is_small(axis)]
    for axis in blocks:
        factors[axis] = (tiles.window_block,)
    outside = sorted(
        (axis for axis in others if axis in moved),
        key=lambda axis: (axis not in packed, axis in blocks, others.index(axis)),
    )
    outer = (
        *map(Loop, outside),
        Loop(lanes),
        *(Loop(axis) for axis in others if axis not in moved),
        *(Loop(axis, 1) for axis in blocks),
        Loop(rows),
    )
    return Tiling(
        rows, lanes, tuple(factors), outer, _inner(contraction, factors, rows, lanes), True
    )


def _short_windows(contraction: _Contraction, rows: int, lanes: int) -> tuple[int, ...]:
    """The axes that move windows that ``rows`` moves along another dimension, itself among them, if all may be rows."""
    accesses, tiles = contraction.accesses, contraction.machine.tiles
    apart = [
        axis
        for axis in contraction.node.output_axes()
        if contraction.is_small(axis)
        and contraction.slides(axis)
        and not any(_has(index, axis) and _has(index, lanes) for index in accesses)
    ]
    counts = [contraction.extent(axis) for axis in apart]
    most = tiles.rows * tiles.lanes // tiles.window_lanes
    fits = all(counts) and prod(count or 1 for count in counts) <= most
    return tuple(apart) if rows in apart and 1 < len(apart) and fits else ()


def _is_last(index: Access, axis: int) -> bool:
    """Whether an access walks along memory by an axis."""
    return bool(index) and index[-1].axis() == axis


def _has(index: Access, axis: int) -> bool:
    return axis in variables_of(index)
