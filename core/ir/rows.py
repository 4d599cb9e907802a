"""Rows of axes, and what can be demanded of them: the vocabulary of shape inference.

A shape is three rows: batch, input, output; a tensor is stored batch axes first, then output, then input axes. A row
has leading axes, at most one row variable, and trailing axes: what a row lacks is inserted at the variable. An
inequality ``result`` below ``operand`` says that the operand may be repeated: it may lack axes, and a stretchable
axis of size 1 may be met by any size.

Produced by ``infer/operations.py`` from the operations of a graph, solved by ``infer/solver.py``.

Invariants:
    - Dimension variables and row variables are numbered from 0, each kind by itself.
    - Only an axis of size 1 stretches.
    - A sum has no variable twice and no coefficient 0: it is an affine axis (``stride*over + dilation*kernel``) or
      a concatenated one.
    - A variable that is the size of a ``Known`` is bound to one of that size, and stays in sums.
    - Every constraint carries the place in the program that made it.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from typing import Literal

from ilang.core.calculus.affine import Affine
from ilang.core.record import entity, record
from ilang.core.source import Span

KINDS = ("batch", "input", "output")
MEMORY_ORDER = (0, 2, 1)
"""The rows of a tensor in the order in which it is stored: batch, output, input."""


@record
class Origin:
    """A place in the program: what messages call it, and where the text has it (None outside any text).

    ``rows`` says which two rows meet there, where that is not plain: ``its batch row against that of x``. ``role`` is
    there where the shape of a specification meets a leaf, or a value that is computed, where a number is written,
    where a slice takes an axis, and where `*` or `/` contracts two rows.
    """

    says: str
    span: Span | None
    rows: str = ""
    role: Literal["leaf", "result", "written", "slice", "contracted"] | None = None

    def at(self, kind: str, name: str) -> Origin:
        """This place, where a row of one operand meets that of the result."""
        return Origin(self.says, self.span, f"the {kind} row of {name}")


@record
class Var:
    """An axis not yet known; as the size of a known one, a number that comes at run time."""

    number: int


OPEN = Var(-1)
"""The size of an axis of a leaf that comes at run time: inference numbers it."""


@entity
class Known:
    """An axis whose size is decided: a number, or one that comes at run time, which never stretches.

    ``label`` is its unit, if it has one. ``origin`` says who gave the size. Each ``Known`` is an axis of its own: two
    are one only where constraints say so.
    """

    size: int | Var
    origin: Origin
    stretch: bool = False
    label: str | None = None


Dim = Known | Var | Affine
"""An axis; an ``Affine`` is one whose size is a sum over dimension variables."""


def terms_of(dim: Dim) -> tuple[tuple[int, int], ...]:
    """The variables of an axis that is not known, with their coefficients."""
    if isinstance(dim, Known):
        return ()
    return ((1, dim.number),) if isinstance(dim, Var) else dim.steps()


def extent_of(axis: Known) -> int:
    """The size of an axis that is known before arrays come."""
    assert isinstance(axis.size, int)
    return axis.size


@record
class Row:
    """Axes of one kind; ``variable`` is the row variable between the leading and the trailing ones, or None."""

    leading: tuple[Dim, ...]
    variable: int | None
    trailing: tuple[Dim, ...]

    def axes(self) -> tuple[Dim, ...]:
        """The explicit axes, left to right."""
        return self.leading + self.trailing

    def count(self) -> int:
        """The number of explicit axes."""
        return len(self.leading) + len(self.trailing)

    def numbered(
        self, fresh: Callable[[], Var], sums: MutableSequence[Constraint], origin: Origin
    ) -> Row:
        """The row with a new variable for each axis that is a sum; ``sums`` gets the equation of each."""

        def number(axis: Dim) -> Dim:
            if isinstance(axis, Affine):
                variable = fresh()
                sums.append(DimEqual(variable, axis, origin))
                return variable
            return axis

        leading = tuple(map(number, self.leading))
        return Row(leading, self.variable, tuple(map(number, self.trailing)))


Shape = tuple[Row, Row, Row]
"""The batch, input and output rows of a tensor."""


def known_axes(row: Row) -> tuple[Known, ...]:
    """The axes of a solved row."""
    return tuple([axis for axis in row.axes() if isinstance(axis, Known)])


def closed(axes: Sequence[Dim]) -> Row:
    """A row with exactly these axes."""
    return Row((), None, tuple(axes))


def opened(variable: int) -> Row:
    """The row that is one row variable."""
    return Row((), variable, ())


@record
class DimEqual:
    """Two axes are one size and one unit."""

    one: Dim
    other: Dim
    origin: Origin


@record
class DimBelow:
    """The axis of a result below that of an operand: equal, or the operand's stretches."""

    result: Dim
    operand: Dim
    origin: Origin


@record
class RowEqual:
    """Two rows have the same axes.

    ``reads`` says that one of them is how an operation reads a value that another one computes: what computes it tells
    which axes lead, and who reads it does not.
    """

    one: Row
    other: Row
    origin: Origin
    reads: bool = False


@record
class RowBelow:
    """The row of a result below that of an operand, which may lack axes."""

    result: Row
    operand: Row
    origin: Origin


@record
class AtLeast:
    """An axis is indexed at ``size - 1``; one that is called ``part``, of an affine index, has an element at least."""

    dim: Dim
    size: int
    origin: Origin
    part: str | None = None


@record
class Positions:
    """The positions of an index of an index expression along the dimension ``base``.

    ``padding`` elements are added to the dimension, on both ends together. ``windows`` are the other axes of the index
    with their steps: there are floor((base + padding - sum of step*(window - 1) - 1) / stride) + 1 positions.
    """

    dim: Dim
    base: Dim
    windows: tuple[tuple[int, Dim], ...]
    stride: int
    padding: int
    origin: Origin


@record
class Composed:
    """An axis has as many elements as its ``parts`` together; ``names`` are those of the parts.

    One part may be unknown, then it is what is left: it is not guessed.
    """

    dim: Dim
    parts: tuple[Dim, ...]
    names: tuple[str, ...]
    origin: Origin


@record
class StoredRows:
    """The axes of some rows, one row after the other, are those of others: what reads a tensor by its dimensions."""

    left: tuple[Row, ...]
    right: tuple[Row, ...]
    origin: Origin


@record
class Determined:
    """An axis must not be guessed: a size that only the program can give, and ``how``."""

    dim: Dim
    name: str
    origin: Origin
    how: str = ""


@record
class Product:
    """The axes of some rows have as many elements as those of others."""

    left: tuple[Row, ...]
    right: tuple[Row, ...]
    origin: Origin


@record
class LeafRow:
    """A row of a leaf: it takes its size from use.

    ``required``: it is a parameter's, whose sizes must not be guessed; ``whole`` asks that such a row as a whole is
    found, not only the axes it is known to have. ``repeated``: it has the axes that something needs of it, and is
    repeated along all others of what it meets.
    """

    row: Row
    required: bool
    whole: bool
    origin: Origin
    repeated: bool = False


Constraint = (
    DimEqual
    | DimBelow
    | RowEqual
    | RowBelow
    | StoredRows
    | AtLeast
    | Positions
    | Composed
    | Determined
    | Product
    | LeafRow
)


def weighted(parts: Sequence[tuple[int, Dim]], offset: int, origin: Origin) -> Dim:
    """The axis of size ``offset`` plus the sum of coefficient * axis."""
    terms: dict[int, int] = {}
    for coefficient, part in parts:
        match part:
            case Known():
                if isinstance(part.size, int):
                    offset += coefficient * part.size
                else:
                    terms[part.size.number] = terms.get(part.size.number, 0) + coefficient
            case Var() | Affine():
                offset += 0 if isinstance(part, Var) else coefficient * part.offset
                for inner, variable in terms_of(part):
                    terms[variable] = terms.get(variable, 0) + coefficient * inner
    kept = tuple((c, variable) for variable, c in sorted(terms.items()) if c)
    if not kept:
        return Known(offset, origin)
    if kept == ((1, kept[0][1]),) and not offset:
        return Var(kept[0][1])
    return Affine(kept, offset)


def window(stride: int, over: Dim, dilation: int, kernel: Dim | None, origin: Origin) -> Dim:
    """The axis that ``stride*over + dilation*kernel`` walks exactly; without a kernel, ``stride*over``."""
    if kernel is None:
        return weighted([(stride, over)], 0, origin)
    return weighted([(stride, over), (dilation, kernel)], 1 - stride - dilation, origin)
