"""The price of a tiling of a contraction whose extents are known: cycles of one core, by a model of it.

What a tile issues is counted: fused multiply-adds, loads, sums that are stored, elements that are packed. So are the
cache lines that come into each cache, as in analytical models of loop tiling (Li et al., Analytical characterization
and design space exploration for optimization of CNNs, ASPLOS 2021; Low et al., Analytical modeling is enough for
high-performance BLIS, TOMS 2016): the loops from some depth on touch no more lines than the cache holds, and each
iteration of the loops around them brings these lines in, but for arrays that the innermost of those loops do not move.

Example, ``ik*kj~ijk >> +ijk~ij`` of 512 each, lanes j in blocks of 64, rows i in blocks of 6:
    issued   512 rows, 4 vectors, 8 blocks of lanes, 512 terms: a multiply-add of a vector each
    moved    in1 once; in0 once for each block of lanes, from the second cache; the packed block of in1 stays there
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil, gcd, prod

from ilang.core.calculus.affine import Affine
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.record import record
from ilang.core.schedule.choose.packing import TileAxes, tile_site
from ilang.core.schedule.registers import wide_parts

Dims = tuple[int, ...]
"""The axis that walks each dimension of an array, the last one contiguous; -1 where no axis does."""


@record
class Price:
    """The cycles of a tiling by what takes them: what goes on at once counts as its longest part, all else is added.

    Fields:
        multiply_adds, loads, chains: at once: issued multiply-adds and loads, and sums that wait for themselves.
        idle: of the multiply-adds those of lanes past an edge.
        streamed: lines that come into each cache one after the other.
        waited: lines that come into each cache out of order.
        stored, merged: sums stored, and added to what other terms have left in memory.
        begun: tiles begun and ended.
        copied: elements packed.
        copied_lines: lines that packing moves.
    """

    multiply_adds: float
    loads: float
    chains: float
    idle: float
    streamed: tuple[float, ...]
    waited: tuple[float, ...]
    stored: float
    merged: float
    begun: float
    copied: float
    copied_lines: float

    def cycles(self) -> float:
        """All cycles."""
        at_once = max(self.multiply_adds, self.loads, self.chains)
        lines = sum(self.streamed) + sum(self.waited)
        sums = self.stored + self.merged + self.begun
        return at_once + lines + sums + self.copied + self.copied_lines


class TilePrice:
    """The loops of a tile with their iterations, and what they cost on a machine."""

    def __init__(
        self, node: Assignment, extents: Sequence[int], nest: Nest, axes: TileAxes, machine: Machine
    ) -> None:
        """A reduction, the extents of its axes, its loops, rows and lanes innermost, and the axes of the tile."""
        self.node, self.extents, self.nest, self.axes = node, extents, nest, axes
        self.machine = machine
        assert machine.core is not None
        self.core, self.vector = machine.core, machine.vector_lanes("f32")
        self.line_bytes = machine.memory.line_bytes
        self.trips = tuple(map(self._trips, nest.order))
        self.reduced = frozenset(node.reduced_axes())
        self.covered = self._covered()

    def _trips(self, loop: Loop) -> int:
        """The iterations of a loop."""
        parts = self.nest.factors[loop.axis]
        if loop.part:
            return min(self.extents[loop.axis], parts[loop.part - 1])
        return ceil(self.extents[loop.axis] / prod(parts))

    def _covered(self) -> list[list[int]]:
        """For each depth the elements along each axis that the loops from there on walk, and 1 for axis -1."""
        covered = [[1] * (len(self.extents) + 1)]
        for loop in reversed(self.nest.order):
            walked = [*covered[-1]]
            parts = self.nest.factors[loop.axis][loop.part - 1 :] if loop.part else ()
            whole = self.extents[loop.axis]
            walked[loop.axis] = max(walked[loop.axis], min(whole, prod(parts)) if parts else whole)
            covered.append(walked)
        return covered[::-1]

    def price(self, reads: Sequence[tuple[Affine, ...]]) -> Price:
        """The price of all tiles, whose innermost iteration reads at these indices."""
        arrays: list[tuple[Dims, bool, bool]] = []
        copied = copied_lines = 0.0
        for index in dict.fromkeys(reads):
            dims = dims_of(index)
            site = tile_site(self.axes, index, self.nest)
            if site is not None:
                elements, lines = self._packing(dims, site)
                copied, copied_lines = copied + elements, copied_lines + lines
                lanes = self.axes.lanes if self.axes.lanes in dims else self.axes.rows
                dims = (*sorted({axis for axis in dims if axis not in (-1, lanes)}), lanes)
            arrays.append((dims, False, site is not None))
        streamed, waited = self._moving([*arrays, (dims_of(self.node.target), True, False)])
        return Price(*self._computing(), streamed, waited, *self._storing(), copied, copied_lines)

    def _counts(self) -> tuple[int, int, float, int]:
        """The results beside a row of a tile, vectors across all lanes, tiles, and terms of a sum."""
        extents = self.extents
        rows, lanes = (self.covered[-3][axis] for axis in self._sides())
        height, width = (extents[axis] for axis in self._sides())
        vectors = ceil(lanes / self.vector)
        across = ceil(width / lanes) * vectors
        others = prod(extents[a] for a in self.node.output_axes() if a not in self._sides())
        visits = others * ceil(height / rows) * ceil(width / lanes)
        return others * height, across, visits, prod(extents[axis] for axis in self.reduced)

    def _computing(self) -> tuple[float, float, float, float]:
        """The cycles that multiply-adds, loads of operands and chains of sums take, and those of idle lanes.

        Registers hold a part of a tile at a time, which part is said by the instruction set: the mean of all.
        """
        core, (beside, _, _, terms) = self.core, self._counts()
        rows, lanes = (prod(self.nest.factors[axis]) for axis in self._sides())
        height, width = (self.extents[axis] for axis in self._sides())
        sets = [*wide_parts(self.machine, (rows, lanes))]
        added = loaded = chained = 0.0
        for unit, part in sets:
            across = [*_in_tiles(width, lanes, partial(_broad, wide=part.lanes, unit=unit))]
            for high, n in _in_tiles(height, rows, partial(_high, heights=part.rows)):
                for broad, m in across:
                    vectors, count = broad / self.vector, n * m / len(sets)
                    added += count * high * vectors / core.multiply_adds
                    loaded += count * (high / 2 + vectors) / core.loads  # half for one number
                    chained += count * core.latency
        times = beside / height * terms
        idle = added * times - beside * width / self.vector / core.multiply_adds * terms
        return added * times, loaded * times, chained * times, idle

    def _storing(self) -> tuple[float, float, float]:
        """The cycles in which sums are stored, added to others in memory, and tiles begun."""
        core, (beside, across, visits, _) = self.core, self._counts()
        blocks = prod(
            trips
            for loop, trips in zip(self.nest.order, self.trips, strict=True)
            if loop.axis in self.reduced and not loop.part and self.nest.factors[loop.axis]
        )
        target = dims_of(self.node.target)
        is_along = bool(target) and target[-1] == self.axes.lanes
        each = core.stored if is_along else core.transposed * self.vector
        sums = beside * across
        return sums * each, sums * (blocks - 1) * core.merged, visits * blocks * core.begun

    def _sides(self) -> tuple[int, int]:
        return self.axes.rows, self.axes.lanes

    def _packing(self, dims: Dims, site: int) -> tuple[float, float]:
        """The cycles of the elements and of the lines of a copy, made inside so many loops."""
        repeats = prod(self.trips[:site])
        copied = prod(self.covered[site][axis] for axis in dims)
        side = self.axes.lanes if self.axes.lanes in dims else self.axes.rows
        each = self.core.copied if dims[-1] == side else self.core.transposed
        lines, written = self._lines(dims, site), 2 * ceil(copied / self.vector)
        moved = sum(
            cost * (lines * repeats + (written * repeats if held < copied * 4 else 0))
            for held, cost in zip(self.core.cache_bytes, self.core.line_cycles, strict=True)
            if held < lines * self.line_bytes * repeats
        )
        return repeats * copied * each, moved

    def _run(self, dims: Dims, depth: int) -> tuple[int, int]:
        """The elements side by side that the loops from a depth on touch, and how often there are so many."""
        covered, run, times = self.covered[depth], 1, 1
        is_whole = True
        for axis in reversed(dims):
            if is_whole:
                run *= covered[axis]
            else:
                times *= covered[axis]
            is_whole &= axis >= 0 and covered[axis] == self.extents[axis]
        return run, times

    def _lines(self, dims: Dims, depth: int, is_packed: bool = False) -> int:
        """The cache lines of an array that the loops from a depth on touch; a packed one has them side by side."""
        run, times = self._run(dims, depth)
        return ceil(run * times / self.vector) if is_packed else ceil(run / self.vector) * times

    def _kept_lines(self, dims: Dims, depth: int, is_packed: bool) -> int:
        """The lines of the nearest cache that an array takes, with what rows at one place of its ways leave empty."""
        lines = self._lines(dims, depth, is_packed)
        run, _ = self._run(dims, depth)
        way, apart, is_whole = self.core.way_bytes, 1, True
        for axis in () if is_packed else reversed(dims):
            rows = self.covered[depth][axis]
            if axis < 0 or (not is_whole and 1 < rows):
                break
            is_whole &= rows == self.extents[axis]
            apart *= self.extents[axis]
        else:
            return lines
        if axis < 0:
            return lines
        every, each = way // self.line_bytes, ceil(run / self.vector)
        places = min(every, way // gcd(way, apart * 4) * each)
        is_crowded = rows * each > places * (self.core.cache_bytes[0] // way)
        return lines * every // places if is_crowded else lines

    def _moving(
        self, arrays: Sequence[tuple[Dims, bool, bool]]
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The cycles in which lines of arrays, some written, some packed, come into each cache; written ones go back.

        The first numbers are of lines one after the other, which a processor prefetches, the second ones of all others.
        """
        order = self.nest.order
        streamed, waited = ([0.0] * len(self.core.cache_bytes) for _ in range(2))
        depths = range(len(order) + 1)
        registers = len(order) - 2  # they hold what rows and lanes of a tile share in one term
        near = 0  # adjacent lines come in order where loops that fit the nearest cache walk them
        # A tile is stored after its terms: until then registers have it.
        stored = next((n for n, loop in enumerate(order) if loop.axis in self.reduced), registers)
        lines, near_lines = (
            [
                [0 if written and stored < d else count(dims, d, packed) for d in depths]
                for dims, written, packed in arrays
            ]
            for count in (self._lines, self._kept_lines)
        )
        costs = zip(self.core.cache_bytes, self.core.line_cycles, strict=True)
        for cache, (held_bytes, cost) in enumerate(costs):
            most = held_bytes // self.line_bytes
            kept = lines if cache else near_lines
            held = next(d for d in depths if d == registers or sum(n[d] for n in kept) <= most)
            fits = sum(n[held] for n in kept) <= most
            near = near or held
            if not held:  # all of it stays there, whatever the order is
                continue
            for (dims, is_written, is_packed), each, stay in zip(arrays, lines, kept, strict=True):
                inside = min(held, stored) if is_written else held
                moved, is_kept = float(each[inside]), fits
                for depth in reversed(range(inside)):
                    is_shared = is_kept  # lines of two iterations that fit
                    is_kept &= 2 * stay[depth] <= most
                    if order[depth].axis in dims and is_shared:
                        moved *= each[depth] / each[depth + 1]
                    elif not is_kept:
                        moved *= self.trips[depth]
                in_order = is_packed or 4 * self.vector <= self._run(dims, near)[0]
                moved *= cost * (2 if is_written else 1)
                if in_order:
                    streamed[cache] += moved
                else:
                    waited[cache] += self.core.waiting[cache] * moved
        return tuple(streamed), tuple(waited)


def _in_tiles(
    extent: int, tile: int, parts: Callable[[int], Iterator[tuple[int, int]]]
) -> Iterator[tuple[int, int]]:
    """The parts of all tiles along a side: lengths, and how many there are of each."""
    for length, tiles in ((tile, extent // tile), (extent % tile, 1)):
        if length:
            yield from ((part, tiles * count) for part, count in parts(length) if count)


def _high(length: int, heights: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The heights of the parts of so many rows, and how many there are: for what is left, the least that has it."""
    yield heights[0], length // heights[0]
    rest = length % heights[0]
    if rest:
        yield min(height for height in heights if rest <= height), 1


def _broad(length: int, wide: int, unit: int) -> Iterator[tuple[int, int]]:
    """The lanes of the parts of so many, and how many there are: a little that is left goes vector by vector."""
    rest = length % wide
    yield wide, length // wide + (wide < 2 * rest)
    if 0 < 2 * rest <= wide:
        yield unit, ceil(rest / unit)


def dims_of(index: Sequence[Affine]) -> Dims:
    """The axis that walks each dimension; -1 where no single one does."""
    axes = (part.axis() for part in index)
    return tuple(-1 if axis is None else axis for axis in axes)
