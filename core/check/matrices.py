"""Invariants of products of a matrix unit: whole warps come to them, with what the machine says each lane has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ilang.core.ir import kernel as ir
from ilang.core.ir.gpu import MatrixProduct, SwapBuffers, ThreadLoop
from ilang.core.ir.rewriting import Access, vector_stores
from ilang.core.ir.scalar import Load, Scalar, scalars_within
from ilang.core.machine import DeviceLimits
from ilang.core.matrix_unit import rounding_in

Demand = Callable[[ir.Program, ir.Kernel, bool, str], None]
"""A function that raises an InternalError where an invariant does not hold."""


def verify(program: ir.Program, kernel: ir.Kernel, demand: Demand) -> None:
    """Check every product of a kernel."""
    device = program.machine.gpu()
    verifier = _MatrixVerifier(program, kernel, device, demand)
    verifier.block(kernel.body, (), frozenset())


class _MatrixVerifier:
    def __init__(
        self, program: ir.Program, kernel: ir.Kernel, device: DeviceLimits, demand: Demand
    ) -> None:
        self.program = program
        self.kernel = kernel
        self.device = device
        self.rounded = _rounded(kernel)
        self.held: dict[Access, Scalar] = {}
        self._demand = demand

    def demand(self, holds: bool, invariant: str) -> None:
        """Raise an InternalError unless an invariant holds."""
        self._demand(self.program, self.kernel, holds, invariant)

    def block(self, body: ir.Block, lanes: Sequence[ir.For], apart: frozenset[int]) -> None:
        """Check a block inside loops that threads share; variables ``apart`` tell the lanes of a warp apart."""
        for s in body:
            if isinstance(s, MatrixProduct):
                self.demand(bool(lanes), "threads share what a matrix unit does")
                self._product(s, lanes)
            elif isinstance(s, ThreadLoop) and s.over == "threads":
                inside = list(ir.statements_within(s.body))
                stores = [x for x in inside if isinstance(x, ir.Store)]
                loops = [x for x in inside if isinstance(x, ir.For)]
                vectors = [x for x in loops if isinstance(x.manner, ir.Vectors)]
                stores += [store for x in vectors for store in vector_stores(self.program, x)]
                self.held = {(x.buffer, x.index): x.value for x in stores}
                self.block(s.body, s.loops, frozenset(loop.variable for loop in s.loops[-2:]))
            elif any(isinstance(x, MatrixProduct) for x in ir.statements_within((s,))):
                around = s.ends() if isinstance(s, ir.For) else set()
                if isinstance(s, ir.If):
                    around = {v for each in s.within for v in each.index.axes()}
                self.demand(not around & apart, "the lanes of a warp come to a product together")
                for block in ir.blocks_of(s):
                    self.block(block, lanes, apart)

    def _product(self, s: MatrixProduct, lanes: Sequence[ir.For]) -> None:
        unit, (group, place) = self.device.unit(s.rounding), (loop for loop in lanes[-2:])
        groups = self.device.warp // unit.across
        counts = [self.program.sizes[loop.size].fixed for loop in (group, place)]
        plain = all(loop.role in ("", "t") and not loop.within for loop in (group, place))
        self.demand(plain and counts == [groups, unit.across], "the last loops are of lanes")
        rows, terms = unit.rows // groups, unit.terms_of(0)
        sizes = (rows * unit.columns // unit.across, len(terms) * rows, len(terms))
        counted = len(s.sums), len(s.left), len(s.right)
        self.demand(counted == sizes, "lanes have as many elements as the machine says")
        self.demand(len(set(s.sums)) == len(s.sums), "a lane adds to each of its sums once")
        local = all(self.program.buffers[load.buffer].space == "local" for load in s.sums)
        self.demand(local, "a lane adds to sums of its own")
        left, right = (tuple(map(self._read, side)) for side in (s.left, s.right))
        factors = (*left, *right)
        self.demand(all(x.dtype == "f32" for x in s.sums), "sums are of f32")
        self.demand(all(x.dtype == unit.dtype for x in factors), "factors are of the unit's type")
        right_way = all(self._is_rounded(x, s.rounding) for x in factors)
        self.demand(right_way, "a matrix unit multiplies what is rounded")
        several = [terms[n : n + unit.packed] for n in range(0, len(terms), unit.packed)]
        steps = [(n, row * groups) for some in several for row in range(rows) for n in some]
        at = group.variable, place.variable, unit.packed
        self.demand(_is_laid_out(left, steps, *at), "lanes have rows by group and terms by place")
        steps = [(n, 0) for n in terms]
        self.demand(_is_laid_out(right, steps, *at), "lanes have columns by group, terms by place")

    def _read(self, scalar: Scalar) -> Scalar:
        """The scalar that a read of copies or arrays has; where registers hold it, the one that is stored there."""
        if isinstance(scalar, Load) and self.program.buffers[scalar.buffer].space == "local":
            return self.held.get((scalar.buffer, scalar.index), scalar)
        return scalar

    def _is_rounded(self, scalar: Scalar, rounding: str) -> bool:
        if isinstance(scalar, Load):
            return self.rounded.get(scalar.buffer) == {rounding}
        return rounding_in(scalar) == rounding


def _rounded(kernel: ir.Kernel) -> dict[int, set[str | None]]:
    """The roundings of all values that are stored in a buffer, by its number, or in one that it is swapped with."""
    inside = list(ir.statements_within(kernel.body))
    rounded: dict[int, set[str | None]] = {}
    for s in inside:
        if isinstance(s, ir.Store):
            rounded.setdefault(s.buffer, set()).add(rounding_in(s.value))
    for s in inside:
        if isinstance(s, SwapBuffers):
            both = rounded.get(s.first, set()) | rounded.get(s.second, set())
            rounded |= {s.first: both, s.second: both}
    return rounded


def _is_laid_out(
    side: Sequence[Scalar], steps: Sequence[tuple[int, int]], group: int, place: int, packed: int
) -> bool:
    """Whether the loads of a side of a product are where the instruction of a matrix unit wants them in each lane.

    Args:
        side: what a lane holds of the side.
        steps: for each of these, how many terms, and how many groups of lanes, it is further on than the first one.
        group: the variable that counts groups of lanes.
        place: the variable that counts lanes in a group.
        packed: the terms that a lane holds side by side: a step of ``place`` is as many.
    """
    loads = [part for scalar in side for part in scalars_within(scalar) if isinstance(part, Load)]
    if len(loads) != len(side) or len({load.buffer for load in loads}) != 1:
        return False
    first = loads[0].index
    if not {group, place} <= {v for part in first for v in part.axes()}:
        return False
    for load, (terms, groups) in zip(loads, steps, strict=True):
        for part, start in zip(load.index, first, strict=True):
            step = terms * start.coefficient(place) // packed + groups * start.coefficient(group)
            if (part - start).constant() != step:
                return False
    return True
