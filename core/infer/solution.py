"""The answer of the solver: every axis of every row, and its size."""

from __future__ import annotations

from ilang.core.infer.dims import Dims
from ilang.core.infer.rowvars import EMPTY, RowVars
from ilang.core.ir.rows import Dim, Known, Row


class Solution:
    """Every axis known: ``row`` gives the axes of a row, ``size`` the size of an axis."""

    def __init__(self, dims: Dims, rows: RowVars, steps: int) -> None:
        self._dims = dims
        self._rows = rows
        self.steps = steps
        self.run_time = dims.run_time
        """The sizes that follow from run-time ones, and the conditions that these must satisfy."""

    def size(self, dim: Dim) -> int:
        """The size of an axis that is known before arrays come."""
        size = self.known(dim).size
        assert isinstance(size, int)
        return size

    def known(self, dim: Dim) -> Known:
        """The axis itself."""
        resolved = self._dims.values.resolve(dim)
        assert isinstance(resolved, Known)
        return resolved

    def cell(self, known: Known) -> int:
        """The number of what all axes are that are one with an axis."""
        return self._dims.cells.cell(known)

    def row(self, row: Row) -> Row:
        """A closed row of known axes, split where its row variable was."""
        if row is EMPTY:
            return row
        resolved = self._rows.resolve(row)
        assert resolved.variable is None
        leading, trailing = map(self.known, resolved.leading), map(self.known, resolved.trailing)
        return Row(tuple(leading), None, tuple(trailing))

    def label(self, dim: Dim) -> str | None:
        """The unit of an axis, or None."""
        return self._dims.cells.unit(self.known(dim))
