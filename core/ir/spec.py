"""Extended einsum specifications as data: one shape per operand and one for the result (docs/tensors.md).

Produced by ``notation/einsum/specification.py`` and ``notation/einsum/subscripts.py``, used by ``ir/operation.py``.

Invariants:
    - A label names one axis wherever it stands in a specification; no label is also the name of a row variable.
    - The row variable of ``...`` is called after its row, with dots before it.
"""

from __future__ import annotations

from ilang.core.record import record
from ilang.core.source import Span


@record
class AxisLabel:
    """An axis by its name."""

    name: str
    span: Span


@record
class Blank:
    """``_``: an axis that ties nothing."""

    span: Span


@record
class Fixed:
    """``0``: one position of an axis, or of a dimension."""

    position: int
    span: Span


@record
class Window:
    """``2*o<+k``: the axis at ``stride*over + dilation*kernel + offset``; ``padded`` keeps the size of stride*over."""

    stride: int
    over: str
    dilation: int
    kernel: str | None
    padded: bool
    offset: int
    span: Span


@record
class Joined:
    """``a^b``: axes one after the other."""

    parts: tuple[str, ...]
    span: Span


Axis = AxisLabel | Blank | Fixed | Window | Joined


def names_of(axis: Axis) -> tuple[str, ...]:
    """The labels that an axis mentions."""
    match axis:
        case AxisLabel():
            return (axis.name,)
        case Window():
            return (axis.over,) if axis.kernel is None else (axis.over, axis.kernel)
        case Joined():
            return axis.parts
        case _:
            return ()


def variable_text(variable: str) -> str:
    """A row variable as it is written: ``...``, or ``..v..``."""
    return "..." if variable.startswith("...") else f"..{variable}.."


@record
class SpecRow:
    """The axes of one row; ``variable`` names the row variable between them, or None."""

    leading: tuple[Axis, ...]
    variable: str | None
    trailing: tuple[Axis, ...]

    def axes(self) -> tuple[Axis, ...]:
        """The explicit axes, left to right."""
        return self.leading + self.trailing


@record
class ShapeSpec:
    """Batch, input and output rows; an omitted row has no axes."""

    rows: tuple[SpecRow, SpecRow, SpecRow]
    span: Span

    def axes(self) -> tuple[Axis, ...]:
        """Every explicit axis."""
        one, two, three = self.rows
        return (*one.axes(), *two.axes(), *three.axes())

    def names(self) -> set[str]:
        """Every label and row variable."""
        variables = {row.variable for row in self.rows if row.variable is not None}
        return variables.union(*(names_of(axis) for axis in self.axes()))


def output_shape(row: SpecRow, span: Span) -> ShapeSpec:
    """A shape of output axes alone."""
    none = SpecRow((), None, ())
    return ShapeSpec((none, none, row), span)


@record
class Spec:
    """``operand; operand => result``; ``named`` says whether axes have names of several characters.

    ``subscripts``: it is written as NumPy writes it, ``operand,operand->result``.
    """

    operands: tuple[ShapeSpec, ...]
    result: ShapeSpec
    named: bool
    text: str
    span: Span
    subscripts: bool = False

    def shapes(self) -> tuple[ShapeSpec, ...]:
        """The operands' shapes, then the result's."""
        return (*self.operands, self.result)

    def names(self) -> set[str]:
        """Every label and row variable."""
        return set[str]().union(*(shape.names() for shape in self.shapes()))
