"""Rows as heads of tensor functions write them: ``x[b|i->o, 3]``. A letter is one size throughout a use of a head."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ilang.core.ir.graph import Assignment, Elementwise, Input, View
from ilang.core.ir.operation import Alike, Fits, Noted, Operation, SizeConstraint, Terminal
from ilang.core.ir.rows import KINDS, Dim, Known, Origin, Row, RowEqual, Shape, Var

if TYPE_CHECKING:
    from ilang.core.ir.functions import AxisNote

BRIEF = 40
"""The longest text of an operation that stands in a message beside that of another."""


class Notes:
    """The axes that letters are, and the row variables, by scope."""

    def __init__(self, fresh: Callable[[str], Var], opened: Callable[[], Row]) -> None:
        """``fresh`` makes an axis that is not known, ``opened`` a row that is one row variable."""
        self.fresh = fresh
        self.opened = opened
        self.axes: dict[tuple[int, str], Var] = {}
        self.rows: dict[tuple[int, str], Row] = {}

    def constraints(self, noted: Noted, shape: Shape) -> Iterator[RowEqual]:
        """The constraints that a head writes of the rows of a value."""
        for kind, note, row in zip(KINDS, noted.note.rows, shape, strict=True):
            leading = tuple([self._axis(noted, axis) for axis in note.leading])
            trailing = tuple([self._axis(noted, axis) for axis in note.trailing])
            variable: int | None = None
            if note.variable is not None:
                key = (noted.scope, note.variable)
                if key not in self.rows:
                    self.rows[key] = self.opened()
                variable = self.rows[key].variable
            says = f"what is written of {noted.name}"
            origin = Origin(says, noted.note.span, f"its {kind} row")
            yield RowEqual(Row(leading, variable, trailing), row, origin)

    def _axis(self, noted: Noted, axis: AxisNote) -> Dim:
        """A size that is written, or the axis that a letter is in this scope."""
        if isinstance(axis.size, int):
            origin = Origin(f"`{axis.span.text()}` of {noted.name}", axis.span, "", "written")
            return Known(axis.size, origin, label=axis.label)
        key = (noted.scope, axis.size)
        if key not in self.axes:
            self.axes[key] = self.fresh(f"axis {axis.size} of {noted.name}")
        return self.axes[key]


def alike(constraint: Alike, one: Shape, other: Shape) -> Iterator[RowEqual]:
    """Two values have the same axes."""
    says = f"{constraint.name}, which keeps its shape,"
    for kind, row, before in zip(KINDS, one, other, strict=True):
        rows = f"its {kind} row before and after"
        yield RowEqual(row, before, Origin(says, constraint.span, rows))


def compared(constraint: SizeConstraint) -> tuple[int, ...]:
    """The values whose axes a constraint compares with those of another, or with what is written."""
    match constraint:
        case Fits():
            return constraint.result, constraint.operand
        case Alike():
            return constraint.one, constraint.other
        case Noted():
            return (constraint.value,)
        case _:
            return ()


def brief(node: object) -> str:
    """The name of a value in messages."""
    match node:
        case Terminal():
            return node.name
        case Input():
            return node.name or "an input"
        case Operation() | Assignment() | Elementwise() | View():
            return f"`{node.text}`" if len(node.text) <= BRIEF else "a result"
        case _:
            raise AssertionError(node)
