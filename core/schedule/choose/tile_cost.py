"""The price of a tiling of a contraction whose extents are known: cycles of one core, by a model of it.

What a tile issues is counted: fused multiply-adds, loads, sums that are stored, elements that are packed. So are the
cache lines that come into each cache, as in analytical models of loop tiling (Li et al., Analytical characterization
and design space exploration for optimization of CNNs, ASPLOS 2021; Low et al., Analytical modeling is enough for
high-performance BLIS, TOMS 2016): the loops from some depth on touch no more lines than the cache holds, and each
iteration of the loops around them brings these lines in, but for arrays that the innermost of those loops do not move.

A core computes while lines come, those out of order included: of what it issues and of the lines that come into each
cache what takes longest counts, except that the nearest cache loads nothing while a line comes into it (Stengel et al.,
Quantifying performance bottlenecks of stencil computations using the execution-cache-memory model, ICS 2015).

Example, ``ik*kj~ijk >> +ijk~ij`` of 512 each, lanes j in blocks of 64, rows i in blocks of 6:
    issued   512 rows, 4 vectors, 8 blocks of lanes, 512 terms: a multiply-add of a vector each
    moved    in1 once; in0 once for each block of lanes, from the second cache; the packed block of in1 stays there
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import ceil, gcd, prod

from ilang.core.calculus.affine import Affine
from ilang.core.dtype import BYTES
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.record import record
from ilang.core.schedule.choose.accesses import Access
from ilang.core.schedule.choose.packing import TileAxes, tile_site
from ilang.core.schedule.choose.terms import MOST_TERMS
from ilang.core.schedule.registers import wide_parts

Dims = tuple[int, ...]
"""The axis that walks each dimension of an array, the last one contiguous; -1 where no axis does."""


Spans = tuple[int, tuple[tuple[int, int], ...]]
"""The elements of a span of memory in which no two are further apart than a line; of each axis along which there are
several such spans, how many there are, and how many elements apart."""
Sites = Mapping[Access, int | None]
"""The number of loops around the copy of what is read at an index; None where it is read in place."""


@record
class Price:
    """The cycles of a tiling by what takes them: what goes on at once counts as its longest part, all else is added.

    Fields:
        at_once: for each instruction set those of multiply-adds, of loads and lines that stop them, of sums that wait
            for themselves, and of lines that come into each cache.
        idle: of the multiply-adds those of lanes past an edge, in the mean.
        stored: sums stored.
        waited: lines that are waited for: those that tiles store a part of, and others that come out of order.
        merged: sums added to what other terms have left in memory.
        begun: tiles begun and ended.
        copied: elements packed, or lines that packing moves where these take longer.
        exposed: the share of lines into the second cache and further ones that is not hidden by what takes longest.
    """

    at_once: tuple[tuple[float, ...], ...]
    idle: float
    stored: float
    waited: float
    merged: float
    begun: float
    copied: float
    exposed: float = 0.0

    def cycles(self) -> float:
        """All cycles: the geometric mean of those with each instruction set, of which each counts alike."""
        each = self._each()
        return prod(each) ** (1 / len(each))

    def weights(self) -> tuple[float, ...]:
        """The weights of instruction sets: with them, the mean of cycles is the geometric one."""
        each, mean = self._each(), self.cycles()
        return tuple(mean / (cycles * len(each)) if cycles else 1 / len(each) for cycles in each)

    def _each(self) -> list[float]:
        """All cycles with each instruction set."""
        added = self.stored + self.waited + self.merged + self.begun + self.copied
        pairs = zip(self.at_once, self.unhidden(), strict=True)
        return [max(cycles) + lines + added for cycles, lines in pairs]

    def unhidden(self) -> list[float]:
        """The cycles of lines into the second cache and further ones that nothing hides, by instruction set."""
        if not self.exposed:
            return [0.0] * len(self.at_once)
        cycles = list[float]()
        for longest, (_, _, _, _, *far) in zip(map(max, self.at_once), self.at_once, strict=True):
            cycles.append(self.exposed * (sum(far) - (longest if longest in far else 0)))
        return cycles


class TilePrice:
    """The loops of a tile with their iterations, and what they cost on a machine."""

    def __init__(
        self, node: Assignment, extents: Sequence[int], nest: Nest, axes: TileAxes, machine: Machine
    ) -> None:
        """A reduction, the extents of its axes, its loops, rows and lanes innermost, and the axes of the tile."""
        self.node, self.extents, self.nest, self.axes = node, extents, nest, axes
        self.machine = machine
        assert machine.core is not None
        dtype = node.scalar.dtype
        assert dtype is not None
        self.core, self.vector, self.size = machine.core, machine.vector_lanes(dtype), BYTES[dtype]
        self.line_bytes = machine.memory.line_bytes
        self.trips = tuple(map(self._trips, nest.order))
        # Registers hold what the loops from here on, rows and lanes of a tile, share in one term.
        self.registers = len(nest.order) - 2
        self.reduced = frozenset(node.reduced_axes())
        # Registers have a tile in the innermost loops of its terms; others around those add to sums in memory.
        terms = [n for n, loop in enumerate(nest.order) if loop.axis in self.reduced]
        results = [n for n in range(self.registers) if n not in terms]
        self.summed, self.stored = terms[0], max(terms[0], results[-1] + 1 if results else 0)
        # A tile adds so many terms before it adds to other sums.
        self.core_depth, added = self.registers, 1
        while (
            self.stored < self.core_depth and added * self.trips[self.core_depth - 1] <= MOST_TERMS
        ):
            self.core_depth -= 1
            added *= self.trips[self.core_depth]
        self.covered = self._covered()
        self.spans: dict[tuple[Dims, int], Spans] = {}
        self.strided = 0  # operands that lanes read across memory
        self.streams: float = machine.core.streams

    def _trips(self, loop: Loop) -> int:
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

    def price(self, reads: Sequence[Access], sites: Sites | None = None) -> Price:
        """The price of all tiles, whose innermost iteration reads at these indices.

        Copies of what is read are made inside of so many loops: at ``sites``, or where rules have them.
        """
        if sites is None:
            sites = {index: tile_site(self.axes, index, self.nest) for index in reads}
        arrays: list[tuple[Dims, bool, bool]] = []
        copied, in_place = 0.0, False
        for index in dict.fromkeys(reads):
            dims, site = dims_of(index), sites.get(index)
            if site is not None:
                copied += self._packing(dims, site)
                dims = self._packed(dims)
            elif self.axes.lanes in dims:
                in_place = True
                self.strided += dims[-1] != self.axes.lanes
            arrays.append((dims, False, site is not None))
        filling, lines, waited = self._moving([*arrays, (dims_of(self.node.target), True, False)])
        stored, merged, begun = self._storing()
        merged += self._edges() if in_place else 0.0
        issued, idle = self._issued()
        at_once = tuple(
            (added, loaded + filling, chained, *lines) for added, loaded, chained in issued
        )
        return Price(at_once, idle, stored, waited, merged, begun, copied, self.core.exposed)

    def _packed(self, dims: Dims) -> Dims:
        """The dimensions of a copy: what the lanes walk, or else the rows, is contiguous."""
        side = next((axis for axis in (self.axes.lanes, self.axes.rows) if axis in dims), None)
        others = sorted({axis for axis in dims if axis not in (-1, side)})
        return tuple(others) if side is None else (*others, side)

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

    def _issued(self) -> tuple[list[tuple[float, float, float]], float]:
        """The cycles that multiply-adds, loads of operands and chains of sums take, for each instruction set.

        Registers hold a part of a tile at a time, which part is said by the instruction set. The last number is the
        mean of the multiply-adds of idle lanes.
        """
        core, (beside, _, _, terms) = self.core, self._counts()
        rows, lanes = self._tile()
        height, width = (self.extents[axis] for axis in self._sides())
        # Elements across memory are loaded one by one, and put into a vector.
        each = 1 + self.strided * (2 * self.vector - 1)
        times = beside / height * terms
        issued, idle = list[tuple[float, float, float]](), 0.0
        for unit, part in wide_parts(self.machine, (rows, lanes), self.size):
            across = [*_in_tiles(width, lanes, partial(_broad, wide=part.lanes, unit=unit))]
            added = loaded = chained = 0
            for high, n in _in_tiles(height, rows, partial(_high, heights=part.rows)):
                for broad, m in across:
                    vectors, count = ceil(broad / unit), n * m
                    added += count * high * vectors
                    loaded += count * (high + each * vectors)
                    chained += count
            idle += times * (added - height * width / unit) / core.multiply_adds
            cycles = (added / core.multiply_adds, loaded / core.loads, chained * core.latency)
            issued.append((times * cycles[0], times * cycles[1], times * cycles[2]))
        return issued, idle / len(issued)

    def _storing(self) -> tuple[float, float, float]:
        """The cycles in which sums are stored, added to others in memory, and tiles begun."""
        core, (beside, across, visits, _) = self.core, self._counts()
        blocks = prod(
            trips
            for loop, trips in zip(self.nest.order[: self.core_depth], self.trips, strict=False)
            if loop.axis in self.reduced
        )
        target = dims_of(self.node.target)
        each = core.stored
        if not self._is_along(target):
            is_square = bool(target) and target[-1] == self.axes.rows
            rows = self.covered[-3][self.axes.rows]
            # Of elements along another axis than both sides the lines are counted, which they wait for.
            each = self.vector * (self._across(rows) if is_square else core.transposed)
        sums = beside * across
        ends = beside * core.merged if self._is_along(target) and self._is_cut(target[-1]) else 0
        added = (
            blocks - 1 if self.summed == self.stored else blocks + 1
        )  # begun by zeros, and read at the end
        return sums * each + ends, sums * added * core.merged, visits * blocks * core.begun

    def _across(self, rows: int) -> float:
        """The cycles of an element that is stored across memory, of so many rows: those beside squares one by one."""
        half = self.vector // 2  # the least squares that vectors transpose
        alone = rows % half / rows
        return alone * self.core.stored + (1 - alone) * self.core.transposed

    def _is_cut(self, axis: int) -> bool:
        """Whether the last vector along an axis is a part of one: its elements are moved some at a time."""
        return self.extents[axis] % self.vector > 0

    def _edges(self) -> float:
        """The cycles of tiles with fewer lanes than others: sums of these are in memory where lanes are not packed."""
        beside, _, _, terms = self._counts()
        lanes = self.extents[self.axes.lanes] % self.covered[-3][self.axes.lanes]
        return beside * ceil(lanes / self.vector) * terms * self.core.merged

    def _is_along(self, target: Dims) -> bool:
        """Whether lanes of a tile are stored along memory, as whole vectors."""
        return bool(target) and target[-1] == self.axes.lanes

    def _sides(self) -> tuple[int, int]:
        return self.axes.rows, self.axes.lanes

    def _tile(self) -> tuple[int, int]:
        """The rows and lanes of a tile: the innermost part of each axis, or all of it."""
        rows, lanes = ((self.extents[axis], *self.nest.factors[axis])[-1] for axis in self._sides())
        return rows, lanes

    def _packing(self, dims: Dims, site: int) -> float:
        """The cycles of a copy, made inside so many loops: of its elements or of its lines, what takes longer."""
        repeats = prod(self.trips[:site])
        copied = prod(self.covered[site][axis] for axis in dims)
        side = self.axes.lanes if self.axes.lanes in dims else self.axes.rows
        is_along = dims[-1] == side
        width = self.covered[site][side]
        each = self.core.copied if is_along else self._across(width)
        each += self._is_cut(side) * self.core.merged / width / ceil(self.extents[side] / width)
        lines, written = self._lines(dims, site), 2 * ceil(copied / self.vector)
        whole = self._lines(dims, 0) * self.line_bytes + copied * self.size
        moved = sum(
            cost * repeats * ((held < whole) * lines + (held < copied * self.size) * written)
            for held, cost in zip(self.core.cache_bytes, self.core.line_cycles, strict=True)
        )
        return max(repeats * copied * each, moved)

    def _spans(self, dims: Dims, depth: int) -> Spans:
        """The spans of memory of an array that the loops from a depth on touch."""
        known = self.spans.get((dims, depth))
        if known is not None:
            return known
        covered, length, stride = self.covered[depth], 1, 1
        apart: list[tuple[int, int]] = []
        for axis in reversed(dims):
            count = covered[axis]
            if not apart and stride - length < self.vector:
                length += (count - 1) * stride
            elif 1 < count:
                apart.append((count, stride))
            stride *= self.extents[axis] if 0 <= axis else 1
        self.spans[dims, depth] = spans = length, tuple(apart)
        return spans

    def _lines(self, dims: Dims, depth: int, is_packed: bool = False) -> int:
        """The cache lines of an array that the loops from a depth on touch; a packed one has them side by side."""
        if is_packed:
            return ceil(prod(self.covered[depth][axis] for axis in dims) / self.vector)
        length, apart = self._spans(dims, depth)
        return ceil(length / self.vector) * prod(count for count, _ in apart)

    def _kept_lines(self, dims: Dims, depth: int, lines: int, cache: int) -> int:
        """The lines of a cache that an array takes, of so many, with those of its ways that these leave empty."""
        way = self.core.way_bytes[cache]
        if not way:
            return lines
        (length, apart), every = self._spans(dims, depth), way // self.line_bytes
        places = ceil(length / self.vector)
        for count, stride in apart:
            places *= min(count, way // gcd(way, self.size * stride))
        ways = self.core.cache_bytes[cache] // way
        return lines * every // places if places * ways < min(lines, every * ways) else lines

    def _moving(
        self, arrays: Sequence[tuple[Dims, bool, bool]]
    ) -> tuple[float, tuple[float, ...], float]:
        """The cycles in which lines of arrays, some written, some packed, come into each cache; written ones go back.

        First those in which the nearest cache loads nothing, last those of lines that are written in part.
        """
        core, registers = self.core, self.registers
        filling, lines, waited = 0.0, [0.0] * len(core.cache_bytes), 0.0
        depths = range(len(self.nest.order) + 1)
        near = 0  # adjacent lines come in order where a loop around those that fit the nearest cache walks them
        touched = [[self._lines(dims, d, packed) for d in depths] for dims, _, packed in arrays]
        sums = self._sums()
        for cache, held_bytes in enumerate(core.cache_bytes):
            most = held_bytes // self.line_bytes
            kept = []
            for (dims, written, packed), lines_of in zip(arrays, touched, strict=True):
                stay = lines_of
                if not packed:
                    stay = [self._kept_lines(dims, d, n, cache) for d, n in enumerate(lines_of)]
                kept.append([0 if written and self.summed < d else stay[d] for d in depths])
            together = [sum(each[d] for each in (*kept, sums)) for d in depths]
            held = next(d for d in depths if d == registers or together[d] <= most)
            near = held if cache == 0 else near
            if not held:  # all of it stays there, whatever the order is
                continue
            for (dims, is_written, is_packed), all_lines, stay in zip(
                arrays, touched, kept, strict=True
            ):
                inside = min(held, self.summed) if is_written else held
                fits = together[inside] <= most
                walks = [loop.axis in dims for loop in self.nest.order[:inside]]
                trips = [*zip(self.trips, walks, strict=False)]
                moved = _moved(trips, all_lines, fits, stay, most)
                if is_written and not self._is_along(dims):
                    waited += moved * core.parted[cache]
                    continue
                if not is_packed:  # what fetches ahead sees where adjacent lines lead
                    around, inner = (self._spans(dims, max(near - n, 0)) for n in (1, 0))
                    late = min(1.0, core.late * self.vector / _run(around, inner, self.streams))
                    waited += moved * late * (core.written if is_written else core.scattered)[cache]
                moved *= 2 if is_written else 1
                lines[cache] += moved * core.line_cycles[cache]
                filling += 0.0 if cache else moved * core.filling
            if self.summed < self.stored:
                inside = min(held, self.stored)
                walks = [
                    self.summed <= n and loop.axis not in self.reduced
                    for n, loop in enumerate(self.nest.order[:inside])
                ]
                trips = [*zip(self.trips, walks, strict=False)]
                moved = 2 * _moved(trips, sums, together[inside] <= most, sums, most)
                lines[cache] += moved * core.line_cycles[cache]
                filling += 0.0 if cache else moved * core.filling
        return filling, tuple(lines), waited

    def _sums(self) -> list[int]:
        """For each depth the lines of sums in memory, in f64, that the loops from there on add to.

        Loops outside all of the sum have the same ones in turn. None where only registers have sums.
        """
        if self.summed == self.stored:
            return [0] * len(self.covered)
        outputs = self.node.output_axes()
        counts = (
            prod(self.covered[max(d, self.summed)][axis] for axis in outputs)
            for d in range(len(self.covered))
        )
        each = [ceil(count * BYTES["f64"] / self.line_bytes) for count in counts]
        return [lines if d <= self.stored else 0 for d, lines in enumerate(each)]


def _moved(
    trips: Sequence[tuple[int, bool]],
    touched: Sequence[int],
    fits: bool,
    kept: Sequence[int],
    most: int,
) -> float:
    """The lines of an array that come into a cache, which keeps those of the loops inside of some, if any.

    Args:
        trips: the iterations of these loops, and whether each walks the array.
        touched: for each depth the lines that the loops from there on touch.
        fits: whether the cache keeps all that the loops inside touch.
        kept: for each depth the lines of the array that the cache keeps.
        most: the lines of the cache.
    """
    moved, is_kept = float(touched[len(trips)]), fits
    for depth in reversed(range(len(trips))):
        is_shared = is_kept  # lines of two iterations that fit
        is_kept &= 2 * kept[depth] <= most
        count, walks = trips[depth]
        if walks and is_shared:
            moved *= touched[depth] / touched[depth + 1]
        elif not is_kept:
            moved *= count
    return moved


def _run(around: Spans, inner: Spans, streams: float) -> int:
    """The elements of a run of adjacent lines: the loop around those that fit the nearest cache makes it longer.

    Of more runs than what fetches ahead follows at a time, each begins anew in every iteration of that loop.
    """
    length, apart = inner
    return around[0] if prod(count for count, _ in apart) <= streams else length


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
