"""Rows before anything open is closed: what the operations alone say (stage 1 of ``infer/solver.py``)."""

from __future__ import annotations

from ilang.core.infer.operations import GraphConstraints
from ilang.core.infer.solver import Solver
from ilang.core.ir.rows import Dim, Known, Row, Shape


def check_so_far(collected: GraphConstraints) -> Solver:
    """The solver, which has drawn what the operations alone say.

    Raises:
        ShapeError: E0501 to E0520.
    """
    given = collected.arrays.given
    solver = Solver(collected.dims, collected.rows, collected.names, given)
    solver.submit(collected.constraints)
    return solver


def rows_so_far(collected: GraphConstraints) -> list[Shape]:
    """The rows of every value.

    Raises:
        ShapeError: E0501 to E0520.
    """
    solver = check_so_far(collected)

    def resolved(row: Row) -> Row:
        resolved_row = solver.rows.resolve(row)
        leading, trailing = (
            tuple(map(solver.dims.values.resolve, axes))
            for axes in (resolved_row.leading, resolved_row.trailing)
        )
        return Row(leading, resolved_row.variable, trailing)

    return [
        (resolved(batch), resolved(inner), resolved(out)) for batch, inner, out in collected.shapes
    ]


def row_words(row: Row) -> str:
    """A row as it is written: ``64``, ``?,3``, ``...,5``; empty where it has no axes."""
    words = [_axis(axis) for axis in row.leading]
    words += ["..."] if row.variable is not None else []
    return ",".join((*words, *map(_axis, row.trailing)))


def _axis(axis: Dim) -> str:
    return str(axis.size) if isinstance(axis, Known) and isinstance(axis.size, int) else "?"
