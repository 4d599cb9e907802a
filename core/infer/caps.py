"""Demands on the row of an operand by its uses: the axes that all of them agree on.

Every result that an operand flows into bounds it from below: the operand may have fewer axes, and where two results
differ in size, the stretchable 1. Bounds come through any number of results in between, so they are collected along
the whole chain before any row is closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.infer.cycles import components
from ilang.core.infer.dims import Dims
from ilang.core.infer.rowvars import RowVars, tail
from ilang.core.ir.rows import Dim, DimBelow, Known, Origin, Row, Var

Axis = tuple[Dim, ...]
"""The dimensions of several results at one place: one size, several unknown axes, or the stretchable 1."""


Cap = tuple[tuple[Axis, ...], tuple[Axis, ...]]
"""The axes that all results agree on, leading and trailing."""


class Caps:
    """The caps of row variables at one moment, each computed once."""

    def __init__(self, dims: Dims, rows: RowVars) -> None:
        self.dims = dims
        self.rows = rows
        self.known: dict[int, Cap | None] = {}
        self.bounds: dict[int, list[Row]] = {}
        self.circle: list[int] = []

    def of(self, variables: Iterable[int], origin: Origin) -> dict[int, Row]:
        """The rows that results ask of variables; unknown axes are new ones above all that are asked."""
        wanted = list(variables)
        for members in components(wanted, self, single=True):
            self.circle = members
            for variable in members:
                self.known[variable] = self._merged(self.bounds[variable])
        caps = {}
        for variable in wanted:
            cap = self.known[variable]
            if cap is not None:
                leading, trailing = (
                    tuple([self._axis(axis, origin) for axis in axes]) for axes in cap
                )
                caps[variable] = Row(leading, None, trailing)
        return caps

    def get(self, variable: int, _: Sequence[int]) -> Sequence[int]:
        """The variables of the results that bound a variable."""
        results = self.rows.results.get(variable, {})
        bounds = self.bounds[variable] = [self.rows.resolve(c.result) for c in results.values()]
        return [row.variable for row in bounds if row.variable is not None]

    def _axis(self, axis: Axis, origin: Origin) -> Dim:
        if len(axis) == 1 and isinstance(axis[0], Known):
            return axis[0]
        above = self.dims.values.fresh()
        self.dims.queue.extend(DimBelow(part, above, origin) for part in axis)
        return above

    def _merged(self, rows: list[Row]) -> Cap | None:
        merged: Cap | None = None
        for row in rows:
            cap = self._one(row)
            if cap is not None:
                merged = cap if merged is None else self._met(merged, cap)
        return merged

    def _one(self, row: Row) -> Cap | None:
        """The bound that one result gives."""
        inner = None
        if row.variable is not None:
            inner = None if row.variable in self.circle else self.known[row.variable]
            if not row.count():
                return inner
        leading = tuple([(self.dims.values.resolve(axis),) for axis in row.leading])
        trailing = tuple([(self.dims.values.resolve(axis),) for axis in row.trailing])
        before, after = inner or ((), ())
        return leading + before, after + trailing

    def _met(self, one: Cap, other: Cap) -> Cap:
        """The axes of two bounds, as far as both have them."""
        if one is other:
            return one
        first, last = (min(map(len, axes)) for axes in zip(one, other, strict=True))
        return (
            tuple(map(self._joined, one[0][:first], other[0][:first])),
            tuple(map(self._joined, tail(one[1], last), tail(other[1], last))),
        )

    def _joined(self, one: Axis, other: Axis) -> Axis:
        parts = {self._key(part): part for part in (*one, *other)}
        known = [part for part in parts.values() if isinstance(part, Known)]
        if len(known) > 1 or any(self.dims.cells.stretches(part) for part in known):
            return (Known(1, known[0].origin, stretch=True),)
        return tuple(part for _, part in sorted(parts.items(), key=lambda item: item[0]))

    def _key(self, part: Dim) -> tuple[int, str]:
        match part:
            case Known():
                return (
                    0,
                    f"{part.size} {self.dims.cells.unit(part)} {self.dims.cells.stretches(part)}",
                )
            case Var():
                return 1, str(part.number)
            case Affine():
                return 2, repr(part)
