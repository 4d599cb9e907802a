"""The price of a reduction without a tile: cycles of one core, as those of tiles are.

Loops say what the lanes of vectors are: elements of a row that is reduced, results side by side in registers or in
memory, or results around a few terms that compilers write out. Vectors, loads, chains and lines are counted as in
``tile_cost.py``.

Example, ``+ij~j`` of 1000 each, | i:8 | i j i':
    issued   1000 rows of 63 vectors, a load each, and an addition in memory for each eight
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf, prod

from ilang.core.dtype import FLOATS
from ilang.core.ir.schedule import Nest
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.schedule.choose.accesses import Access
from ilang.core.schedule.choose.packing import TileAxes
from ilang.core.schedule.choose.terms import MOST_TERMS, RUN
from ilang.core.schedule.choose.tile_cost import Dims, Price, Sites, TilePrice, dims_of

Parts = tuple[float, float, float, float]
"""Cycles of what vectors compute and load, of chains, of additions in memory, and of rows begun and ended."""


def results_in_registers(machine: Machine, terms: int, width: int) -> int:
    """The number of results, in rows of a width, that registers hold while so many terms meet them.

    The last vectors of rows that vectors do not divide overlap, which they may in registers alone: those hold the sums
    of partial sums, too.
    """
    room = machine.tiles.rows * machine.tiles.lanes
    return room * 2 // 3 if RUN < terms and width % machine.vector_lanes("f32") else room


class LoopPrice(TilePrice):
    """The loops of a reduction with their iterations, and what they cost on a machine."""

    def __init__(
        self, node: Assignment, extents: Sequence[int], nest: Nest, machine: Machine
    ) -> None:
        """A reduction, the extents of its axes, known or usual, and its loops."""
        super().__init__(node, extents, nest, TileAxes(-1, -1, False, {}, 0, 0), machine)
        order, self.stored = nest.order, self.summed
        first = next(n for n, loop in enumerate(order) if loop.axis in self.reduced)
        self.beside = [n for n in range(first, len(order)) if order[n].axis not in self.reduced]
        self.around = order[first - 1].axis if first else None
        if order[-1].axis in self.reduced and machine.tiles.unrolled_terms < self.trips[-1]:
            self.beside = []  # the last row of terms has the lanes
        self.lanes = self.beside[-1] if self.beside else len(order) - 1
        # Sums of f32 are in f64: each vector is two.
        self.is_widened = node.acc == "+" and node.scalar.dtype == "f32"
        self.count = prod(extents)
        self.terms = prod(extents[axis] for axis in self.reduced)
        self.is_short = self.terms <= machine.tiles.unrolled_terms and self.around is not None
        axis = self.around if self.is_short and not self.beside else order[self.lanes].axis
        self.sites: Sites = {}
        self.axes = TileAxes(-1, -1 if axis is None else axis, False, {}, 0, 0)

    def price(self, reads: Sequence[Access], sites: Sites | None = None) -> Price:
        """The price of all iterations, of which each reads at these indices; copies are made at ``sites`` alone."""
        arrays, copied = list[tuple[Dims, bool, bool]](), 0.0
        self.sites = sites or {}
        indices = dict.fromkeys(reads)
        self.streams = inf if len(indices) == 1 else self.streams  # strips of one array are long
        for index in indices:
            dims, site = dims_of(index), self.sites.get(index)
            copied += 0.0 if site is None else self._packing(dims, site)
            arrays.append((dims, False, site is not None))
        target, results = dims_of(self.node.target), self.count / self.terms
        is_held = self._is_held()
        self.registers = self.beside[0] if is_held else self.lanes
        arrays += [(target, False, True)] if self.beside and not is_held else []
        parts = self._side_by_side(reads, is_held) if self.beside else self._along(reads)
        issued, chained, merged, begun = parts
        stored = self.core.stored / self.vector if self._is_along(target) else self.core.transposed
        filling, lines, waited = self._moving([*arrays, (target, True, False)])
        at_once = (issued, filling, chained, *lines)
        exposed = self.core.exposed
        return Price((at_once,), 0.0, results * stored, waited, merged, begun, copied, exposed)

    def _is_held(self) -> bool:
        """Whether registers hold all results that terms meet."""
        last = max(n for n, loop in enumerate(self.nest.order) if loop.axis in self.reduced)
        results = prod(self.trips[n] for n in self.beside)
        is_last = bool(self.beside) and last < self.beside[0]
        room = results_in_registers(self.machine, self.terms, self.trips[self.lanes])
        return is_last and self._together() > 0 and results <= room

    def _together(self) -> int:
        """The terms that meet a result in registers, at most as many as are added in f32; 0 where these are more."""
        terms = 0
        for loop, trips in zip(reversed(self.nest.order), reversed(self.trips), strict=True):
            if loop.axis in self.reduced:
                more = max(terms, 1) * trips
                if self.is_widened and MOST_TERMS < more:
                    break
                terms = more
        return terms

    def _loads(self, reads: Sequence[Access], axis: int) -> tuple[float, bool]:
        """The cycles in which a vector along an axis is loaded, and whether its elements are side by side, or one."""
        loads, is_plain = 1.0, True
        for index in reads:
            step, stride = 0, 1
            for part, dim in zip(reversed(index), reversed(dims_of(index)), strict=True):
                step += stride * sum(abs(c) for c, walked in part.steps() if walked == axis)
                stride *= self.extents[dim] if 0 <= dim else self.vector
            step = min(step, self.vector if self.sites.get(index) is None else 1)
            loads += step if step <= 1 else 2 * step
            is_plain &= step <= 1
        return loads / self.core.loads, is_plain

    def _step(self) -> tuple[float, float]:
        """The cycles in which a vector meets another one, in loops and in a register tile."""
        is_ordered = self.node.acc in (">", "<") and self.node.scalar.dtype in FLOATS
        return self.core.ordered if is_ordered else (1 / self.core.multiply_adds,) * 2

    def _side_by_side(self, reads: Sequence[Access], is_held: bool) -> Parts:
        """Lanes are along results."""
        core, order = self.core, self.nest.order
        width, (step, held_step) = self.trips[self.lanes], self._step()
        loads, is_plain = self._loads(reads, order[self.lanes].axis)
        runs = self.count / width
        vectors = runs * ceil(width / self.vector)
        if is_held:
            beside = prod(self.trips[n] for n in self.beside)
            chained, begun = self.count / beside * core.latency, self.count / self.terms / beside
            if is_plain:
                # Sums of several blocks of terms are added in f64, and terms of a strip that ends early in memory.
                blocks = vectors / self._together() - vectors / self.terms
                whole = self.extents[order[self.lanes].axis]
                early = self.count / whole * ceil(whole % width / self.vector)
                issued = (vectors - early) * max(loads, held_step) + early * core.merged
                return issued, chained, 2 * core.merged * blocks, begun * core.begun
            # Compilers make vectors of it, shorter ones for what is left; they leave one row of sums in memory, and
            # several rows of extremes.
            vectors = runs * (width // self.vector + (width % self.vector).bit_count())
            in_memory = self.is_widened == (beside == width)
            each = loads + step + (core.merged if in_memory else core.stored)
            return vectors * each, 0.0, 0.0, 0.0
        inside = prod(self.trips[n] for n in range(self.lanes + 1, len(order)))
        met = core.merged * (1 + self.is_widened)
        added = vectors * (loads + step + (met + step) / inside)
        left = self.count / self.terms * self._left_over()
        return added, 0.0, left, runs / inside * (width % self.vector) / 4

    def _left_over(self) -> int:
        """The terms of a result that are left over where several are added before they meet one."""
        loop = self.nest.order[-1]
        terms = self.extents[loop.axis]
        return self.terms // terms * (terms % self.trips[-1]) if loop.part else 0

    def _along(self, reads: Sequence[Access]) -> Parts:
        """One result at a time: lanes are along what is reduced, or along results around a few terms."""
        core, width, is_sum = self.core, self.trips[-1], self.is_widened
        loads, is_plain = self._loads(reads, self.nest.order[-1].axis)
        if is_plain and self.machine.sum_lanes <= width:
            whole, rest = divmod(width, self.vector)
            rows, half = self.count / width, 2 * rest == self.vector
            vectors = rows * (whole + (rest > 0 if half or not is_sum else 0))
            long = self.machine.most_sum_lanes()
            is_long = not is_sum or RUN * self.machine.sum_lanes <= 2 * width
            partial = long if is_long else self.machine.sum_lanes
            chained = vectors * core.latency * self.vector / partial
            begun = (
                rows * (core.begun / 2 if half else core.begun + rest / 2) * (is_sum and rest > 0)
            )
            is_nest = len(self.trips) > 1 and self.nest.order[-2].axis in self.reduced
            is_converted = is_sum and is_nest and width < 2 * RUN
            return vectors * loads, chained, vectors * core.merged * is_converted, begun
        if self.is_short and self.around is not None:
            loads, _ = self._loads(reads, self.around)
            wide = self.trips[[x.axis for x in self.nest.order].index(self.around)]
            vectors = self.count / wide * ceil(wide / self.vector)
            return (
                vectors * (loads + 2 * (core.merged if is_sum else self._step()[0])),
                0.0,
                0.0,
                0.0,
            )
        return self.count * max(1.0, loads / self.vector), 0.0, 0.0, 0.0
