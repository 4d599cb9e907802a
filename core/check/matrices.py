"""Invariants of products of a matrix unit: whole warps come to them, with what the machine says each lane has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ilang.core.ir.gpu import MatrixProduct, Spread, SwapBuffers
from ilang.core.ir.kernel import (
    Block,
    For,
    If,
    Kernel,
    Program,
    Store,
    blocks_of,
    statements_within,
)
from ilang.core.ir.rewriting import Access
from ilang.core.ir.scalar import Apply, Load, Scalar, scalars_within
from ilang.core.machine import DeviceLimits
from ilang.core.matrix_unit import ROUNDED

Demand = Callable[[Program, Kernel, bool, str], None]
"""A function that raises an InternalError where an invariant does not hold."""


def verify(program: Program, kernel: Kernel, demand: Demand) -> None:
    """Check every product of a kernel."""
    device = program.machine.device
    assert device is not None
    checking = _Checking(program, kernel, device, demand)
    checking.block(kernel.body, (), frozenset())


class _Checking:
    """One kernel of a program."""

    def __init__(
        self, program: Program, kernel: Kernel, device: DeviceLimits, demand: Demand
    ) -> None:
        self.program = program
        self.kernel = kernel
        self.unit = device.matrix
        self.groups = device.warp // device.matrix.across
        self.rounded = _rounded(kernel)
        self.held: dict[Access, Scalar] = {}
        self._demand = demand

    def demand(self, holds: bool, invariant: str) -> None:
        """Raise an InternalError unless an invariant holds."""
        self._demand(self.program, self.kernel, holds, invariant)

    def block(self, body: Block, lanes: Sequence[For], apart: frozenset[int]) -> None:
        """Check a block inside loops that threads share; variables ``apart`` tell the lanes of a warp apart."""
        for s in body:
            if isinstance(s, MatrixProduct):
                self.demand(bool(lanes), "threads share what a matrix unit does")
                self._product(s, lanes)
            elif isinstance(s, Spread) and s.over == "threads":
                stores = (x for x in statements_within(s.body) if isinstance(x, Store))
                self.held = {(x.buffer, x.index): x.value for x in stores}
                self.block(s.body, s.loops, frozenset(loop.variable for loop in s.loops[-2:]))
            elif any(isinstance(x, MatrixProduct) for x in statements_within((s,))):
                around = s.ends() if isinstance(s, For) else set()
                if isinstance(s, If):
                    around = {v for each in s.within for v in each.index.axes()}
                self.demand(not around & apart, "the lanes of a warp come to a product together")
                for block in blocks_of(s):
                    self.block(block, lanes, apart)

    def _product(self, s: MatrixProduct, lanes: Sequence[For]) -> None:
        """Check what each lane has of a product."""
        unit, (group, place) = self.unit, (loop for loop in lanes[-2:])
        counts = [self.program.sizes[loop.size].fixed for loop in (group, place)]
        plain = all(loop.role in ("", "t") and loop.rest is None for loop in (group, place))
        self.demand(plain and counts == [self.groups, unit.across], "the last loops are of lanes")
        rows, terms = unit.rows // self.groups, unit.terms // unit.across
        sizes = (rows * unit.columns // unit.across, terms * rows, terms)
        counted = len(s.sums), len(s.left), len(s.right)
        self.demand(counted == sizes, "lanes have as many elements as the machine says")
        self.demand(len(set(s.sums)) == len(s.sums), "a lane adds to each of its sums once")
        local = all(self.program.buffers[load.buffer].space == "local" for load in s.sums)
        self.demand(local, "a lane adds to sums of its own")
        left, right = (tuple(map(self._read, side)) for side in (s.left, s.right))
        factors = (*left, *right)
        self.demand(all(x.dtype == "f32" for x in (*s.sums, *factors)), "elements are of f32")
        self.demand(all(map(self._is_rounded, factors)), "a matrix unit multiplies what is rounded")
        steps = [
            (part * unit.across, row * self.groups) for part in range(terms) for row in range(rows)
        ]
        at = group.variable, place.variable
        self.demand(_is_laid_out(left, steps, *at), "lanes have rows by group and terms by place")
        steps = [(part * unit.across, 0) for part in range(terms)]
        self.demand(_is_laid_out(right, steps, *at), "lanes have columns by group, terms by place")

    def _read(self, scalar: Scalar) -> Scalar:
        """The scalar that a read of copies or arrays has; where registers hold it, the one that is stored there."""
        if isinstance(scalar, Load) and self.program.buffers[scalar.buffer].space == "local":
            return self.held.get((scalar.buffer, scalar.index), scalar)
        return scalar

    def _is_rounded(self, scalar: Scalar) -> bool:
        held = isinstance(scalar, Load) and scalar.buffer in self.rounded
        return held or (isinstance(scalar, Apply) and scalar.primitive == ROUNDED)


def _rounded(kernel: Kernel) -> set[int]:
    """The buffers of a kernel in which everything that is stored is rounded, as in those that they are swapped with."""
    inside = list(statements_within(kernel.body))
    stores = [s for s in inside if isinstance(s, Store)]
    swaps = [{s.first, s.second} for s in inside if isinstance(s, SwapBuffers)]
    plain = {
        s.buffer
        for s in stores
        if not (isinstance(s.value, Apply) and s.value.primitive == ROUNDED)
    }
    for pair in swaps:
        plain |= pair if pair & plain else set()
    return {s.buffer for s in stores}.union(*swaps) - plain


def _is_laid_out(
    side: Sequence[Scalar], steps: Sequence[tuple[int, int]], group: int, place: int
) -> bool:
    """Whether each element of a side is so many places and groups further on than the first one."""
    loads = [part for scalar in side for part in scalars_within(scalar) if isinstance(part, Load)]
    if len(loads) != len(side) or len({load.buffer for load in loads}) != 1:
        return False
    first = loads[0].index
    if not {group, place} <= {v for part in first for v in part.axes()}:
        return False
    for load, (places, groups) in zip(loads, steps, strict=True):
        for part, start in zip(load.index, first, strict=True):
            by = {v: c for c, v in start.terms}
            offset = start.offset + places * by.get(place, 0) + groups * by.get(group, 0)
            if sorted(part.terms) != sorted(start.terms) or part.offset != offset:
                return False
    return True
