"""The loops of a reduction without a tile: of many, those with the least price (``loop_cost.py``).

What runs along the lanes of vectors is a row that is reduced, or results side by side. Where few terms meet each
result, and are known, results stay in registers until all of them have met it: a whole row of them with rows beside it,
or a strip of a row. Elsewhere they are accumulated in memory, a strip that stays in the cache, and several terms are
added before they meet one.

Examples, a sum of three rows and columns, and a sum of columns:
    in:   out = sum in0[i+u,j+v] over u, v, 3 each       out = sum in0[i,j] over i
    out:  out | j:64 | i j u v j'                        out | i:8,j:2048 | j i j' i'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, prod

from ilang.core.dtype import FLOATS
from ilang.core.ir.known_extents import Extents
from ilang.core.ir.schedule import Loop, Nest
from ilang.core.ir.shaped import Assignment
from ilang.core.machine import Machine
from ilang.core.schedule.choose.accesses import Access
from ilang.core.schedule.choose.loop_cost import LoopPrice, results_in_registers
from ilang.core.schedule.choose.terms import MOST_TERMS
from ilang.core.schedule.choose.tile_cost import Price
from ilang.core.schedule.registers import balanced
from ilang.core.transform.scans import Scan

Loops = tuple[tuple[tuple[int, ...], ...], tuple[Loop, ...]]
"""Splits and loops."""


def priced_loops(
    node: Assignment,
    extents: Extents,
    order: Sequence[int],
    reads: Sequence[Access],
    machine: Machine,
    around: int = 0,
) -> list[tuple[Loops, Price]]:
    """Splits and loops of a reduction with their prices, the cheapest first.

    Args:
        node: a reduction.
        extents: of the program.
        order: its axes, by the strides they cause.
        reads: the indices of all that an iteration reads.
        machine: what the loops are for.
        around: how many axes stay outermost.
    """
    lengths = [extents.usual(size) for size in node.sizes]
    candidates = _Candidates(node, extents, order, reads, machine, around)
    prices = [
        (each, LoopPrice(node, lengths, Nest(*each, ()), machine).price(reads))
        for each in dict.fromkeys(candidates.all())
    ]
    # Not all that vectors compute is hidden behind what takes longer.
    return sorted(prices, key=lambda pair: pair[1].cycles() + pair[1].at_once[0][0] / 10)


def in_blocks(
    node: Assignment, loops: Loops, extents: Extents, machine: Machine, around: int
) -> Loops:
    """Loops inside of so many others, with the terms of a sum of f32 in blocks of those that are added in f32.

    Loops stay as they are where terms are in lanes, not known, or those of the innermost loop over terms no more.
    """
    factors, order = loops
    inner, reduced = order[around:], node.reduced_axes()
    terms = [loop.axis for loop in inner if loop.axis in reduced]
    is_split = any(factors[axis] or extents.fixed(node.sizes[axis]) is None for axis in reduced)
    if machine.core is None or is_split or len(terms) < len(reduced) or inner[-1].axis in reduced:
        return loops
    if (extents.fixed(node.sizes[terms[-1]]) or 0) <= MOST_TERMS:
        return loops
    parts, blocks = _Candidates(node, extents, terms, (), machine, 0).blocks(terms)
    first = next(n for n, loop in enumerate(inner) if loop.axis in reduced)
    others = [loop for loop in inner[first:] if loop.axis not in reduced]
    split = tuple((parts[a],) if a in parts else each for a, each in enumerate(factors))
    return split, (*order[:around], *inner[:first], *blocks, *others)


def scan_loops(
    node: Assignment, scan: Scan, order: Sequence[int], extents: Extents, machine: Machine
) -> Loops:
    """The splits and loops of a scan: the axis along which it goes is right outside what it reduces.

    Results beside each other in memory are in lanes, a strip of them at a time, whose accumulators stay in the cache.

    Args:
        node: the reduction.
        scan: its axes.
        order: all axes, by the strides they cause.
        extents: of the program.
        machine: what the loops are for.
    """
    (_, along, over), outputs = scan, node.output_axes()
    last = node.target[-1].axis()
    lanes = last if last is not None and last != along else None
    others = [axis for axis in order if axis in outputs and axis not in (along, lanes)]
    terms = [axis for axis in order if axis not in outputs and axis != over]
    inner = [*map(Loop, (along, over, *terms))]
    factors: list[tuple[int, ...]] = [()] * len(node.axes)
    if lanes is None:
        return tuple(factors), (*map(Loop, others), *inner)
    strip, count = machine.accumulators(0), extents.fixed(node.sizes[lanes])
    if count is not None and count <= strip:
        return tuple(factors), (*map(Loop, others), *inner, Loop(lanes))
    factors[lanes] = (strip,)
    return tuple(factors), (*map(Loop, (*others, lanes)), *inner, Loop(lanes, 1))


class _Candidates:
    """The candidates of a reduction: of the axes in order, so many stay outermost ``around`` others."""

    def __init__(
        self,
        node: Assignment,
        extents: Extents,
        order: Sequence[int],
        reads: Sequence[Access],
        machine: Machine,
        around: int,
    ) -> None:
        """For one reduction; results in lanes are walked ``along`` memory, and some of them ``stepped`` over."""
        self.node, self.extents, self.machine = node, extents, machine
        self.around, self.order = order[:around], order[around:]
        ends = [index[-1] for index in (node.target, *reads) if index]
        self.along = {order[-1], *(end.axis() for end in ends)}
        # Loops over a few terms are split at boundaries with those around them.
        parts = (part for index in reads for part in index)
        is_plain = all(len(part.axes()) < 2 for part in parts)
        self.most_terms = machine.tiles.strip_terms if is_plain else machine.small_extent
        self.stepped = {axis for end in ends for step, axis in end.steps() if abs(step) > 1}

    def all(self) -> Iterator[Loops]:
        """Whole loops as they are and with terms inside; results along memory in lanes, in registers and in memory."""
        node = self.node
        reduced, outputs = node.reduced_axes(), node.output_axes()
        inside = sorted(self.order, key=lambda axis: axis in reduced)
        terms = [axis for axis in self.order if axis in reduced]
        if node.acc in ("+", ">", "<") and node.scalar.dtype in FLOATS and terms:
            counts = [self._fixed(axis) for axis in terms]
            are_few = prod(count or MOST_TERMS + 1 for count in counts) <= MOST_TERMS
            in_registers = are_few or (all(counts) and node.acc == "+")
            for lanes in (axis for axis in self.order if axis in outputs and axis in self.along):
                others = [axis for axis in self.order if axis in outputs and axis != lanes]
                if in_registers:
                    yield from self._in_registers(others, terms, lanes)
                yield from self._in_memory(others, terms, lanes)
        orders = [self.order, inside]  # of one price: known arrays are read in the order of memory
        for axes in orders if self._fixed(self.order[-1]) else reversed(orders):
            yield self._split({}, map(Loop, (*self.around, *axes)))

    def _in_registers(self, others: list[int], terms: list[int], lanes: int) -> Iterator[Loops]:
        """A row of results in registers, with rows beside it where there is room; a strip of one that is too long."""
        tiles, count = self.machine.tiles, self._fixed(lanes)
        parts, inner = self.blocks(terms)
        outer = [*map(Loop, (*self.around, *others))]
        vector = self.machine.vector_lanes("f32")
        count_of_terms = prod(self._fixed(axis) or 1 for axis in terms)
        room = results_in_registers(self.machine, count_of_terms, count or 0)
        if count is None or room < count:
            # Compilers write out loops over few terms, and do it well for a few vectors.
            is_long = self.node.acc == "+" and tiles.unrolled_terms < count_of_terms
            for width in (room, tiles.lanes) if is_long and count else (tiles.lanes,):
                strips = {**parts, lanes: width}
                yield self._split(strips, (*outer, Loop(lanes), *inner, Loop(lanes, 1)))
            return
        most = room // (ceil(count / vector) * vector)
        # Compilers make vectors of what is walked in steps, and do it well for a few rows.
        several = {2} if lanes in self.stepped else {min(tiles.rows, most), 2}
        for most_rows in sorted(several, reverse=True):
            rows = balanced(self._fixed(others[-1]), most_rows) if others and 1 < most else 1
            if 1 < rows:
                loops = (*outer, *inner, Loop(others[-1], 1), Loop(lanes))
                yield self._split({**parts, others[-1]: rows}, loops)
        yield self._split(parts, (*outer, *inner, Loop(lanes)))

    def blocks(self, terms: Sequence[int]) -> tuple[dict[int, int], list[Loop]]:
        """The splits and loops over terms of which so many are added in f32 as may be, and their sums in f64."""
        is_widened = self.node.acc == "+" and self.node.scalar.dtype == "f32"
        left = MOST_TERMS if is_widened else None
        parts, outer, inner = dict[int, int](), list[Loop](), list[Loop]()
        for axis in reversed(terms):
            count = self._fixed(axis) or 1
            if left is None or count <= left:
                inner.insert(0, Loop(axis))
            else:
                outer.insert(0, Loop(axis))
                if 1 < left:
                    parts[axis] = balanced(count, left)
                    inner.insert(0, Loop(axis, 1))
            left = None if left is None else left // count
        return parts, outer + inner

    def _in_memory(self, others: list[int], terms: list[int], lanes: int) -> Iterator[Loops]:
        """A strip of results in the cache, of which each meets the sum of several terms."""
        machine, parts = self.machine, dict[int, int]()
        strip, vector = machine.accumulators(0), machine.vector_lanes("f32")
        outer, inner = [*map(Loop, (*self.around, *others))], [*map(Loop, terms)]
        count, last = self._fixed(lanes), self._fixed(terms[-1])
        if count is None or strip < count:
            parts[lanes] = ceil(balanced(count, strip) / vector) * vector
            outer.append(Loop(lanes))
        if last is None and self.node.acc != "+":
            return  # terms of an extreme that may be left over take as long as all others
        block = Loop(lanes, int(lanes in parts))
        if last is not None and last <= self.most_terms:
            yield self._split(parts, (*outer, *inner[:-1], block, inner[-1]))
            return
        for some in range(4, (machine.small_extent if last is None else self.most_terms) + 1):
            if some % 4 == 0 or (last and last % some == 0):
                split = {**parts, terms[-1]: some}
                yield self._split(split, (*outer, *inner, block, Loop(terms[-1], 1)))

    def _split(self, parts: dict[int, int], loops: Sequence[Loop] | Iterator[Loop]) -> Loops:
        axes = range(len(self.node.axes))
        return tuple((parts[axis],) if axis in parts else () for axis in axes), tuple(loops)

    def _fixed(self, axis: int) -> int | None:
        """The extent of an axis, 1 at least, None where it is known at run time only."""
        extent = self.extents.fixed(self.node.sizes[axis])
        return extent if extent is None else max(extent, 1)
