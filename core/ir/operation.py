"""Operations between tensors whose shapes are not known yet: leaves, and what an operation does with rows.

Nodes of ``ir/graph.py``; ``infer/operations.py`` makes constraints of them, ``passes/solved_to_shaped.py`` accumulating
assignments.

Invariants:
    - An operation has as many operands as its logic takes: two for ``compose`` and ``interleave``, one for
      ``transpose`` and ``Slice`` (two where its position comes at run time), one per shape for a ``Spec``.
    - A ``Terminal`` of kind ``alike`` writes no rows and no values: an ``Alike`` constraint says whose rows it has.
    - Where ``Stack``, ``interleave`` or a concatenating ``Spec`` writes several parts, the scalar names every
      operand: each part has those that it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ilang.core.ir.rows import Known
from ilang.core.ir.scalar import Scalar
from ilang.core.ir.spec import Spec
from ilang.core.ir.syntax import Schedule
from ilang.core.record import record
from ilang.core.source import Span

if TYPE_CHECKING:
    from ilang.core.ir.functions import ShapeNote

TerminalKind = Literal["data", "parameter", "constant", "fill", "alike", "number"]
"""The source of the rows and the values of a leaf."""


@record
class Terminal:
    """A leaf.

    ``kind``: data (all rows known), parameter, constant (it has output axes, and is repeated along others), fill (its
    rows are those of what it meets), alike (what flows back: it has the rows of what it is the gradient of, and how it
    is used says nothing of them), number (``value``). ``rows`` are batch, input and output; a row that is None is
    inferred. A constant, or a fill, may have ``count`` values.
    """

    name: str
    kind: TerminalKind
    rows: tuple[tuple[Known, ...] | None, tuple[Known, ...] | None, tuple[Known, ...] | None]
    count: int | None
    value: float | int | None
    span: Span


@record
class Slice:
    """One position of the first batch axis; ``extent`` is its declared size, or None.

    A position of None is the one that the second operand, a whole number of rank 0, gives at run time.
    """

    position: int | None
    extent: int | None


@record
class Stack:
    """Operands along a new first axis of row ``kind`` (0 batch, 1 input, 2 output)."""

    kind: int


RowLogic = Literal["pointwise", "compose", "transpose", "interleave"]
"""The operations on whole rows.

    - pointwise: rows of one kind aligned, operands repeated where they lack axes;
    - compose: the input row of the first operand is summed against the output row of the second;
    - transpose: input and output rows exchanged;
    - interleave: the operands at even and odd positions of the last output axis.
"""
Logic = RowLogic | Slice | Spec | Stack


@record
class Operation:
    """An operation: ``target (acc)= scalar(operands)``, its axes found by inference; ``text`` is how it is written.

    An ``associative`` one is a step of a product of several operands whose order nobody wrote.
    """

    operands: tuple[int, ...]
    scalar: Scalar
    acc: str
    logic: Logic
    text: str
    span: Span
    schedule: Schedule | None = None
    associative: bool = False


@record
class SetSize:
    """A label has a size (of a row label: the product of its axes)."""

    label: str
    size: int


@record
class SameSize:
    """Two labels have one size."""

    one: str
    other: str


@record
class Scaled:
    """``big`` is ``factor`` times ``small``."""

    factor: int
    big: str
    small: str


@record
class Fits:
    """The rows of value ``result`` stand below those of value ``operand``, as if it were assigned from it."""

    result: int
    operand: int


@record
class Alike:
    """Two values have the same axes: a tensor before and after an assignment, or a tensor and its gradient."""

    one: int
    other: int
    name: str
    span: Span


@record
class Noted:
    """The rows of ``value`` as a head writes them, called ``name``; the letters of one ``scope`` are one size each."""

    value: int
    name: str
    note: ShapeNote
    scope: int
    span: Span


Amount = str | int | tuple[str | int, ...] | None
"""A size: that of a name, a number, a product of these, or one of which nothing is said."""


@record
class Sized:
    """Sizes that an operation states: those of one ``scope`` and name are one extent.

    ``amounts`` are those of the dimensions of ``value``, of the axes of its assignment, or of the ``labels`` of its
    specification, each with the place in ``spans`` that says it.
    """

    value: int
    of: Literal["dims", "axes", "labels"]
    amounts: tuple[Amount, ...]
    scope: int
    spans: tuple[Span, ...]
    span: Span
    labels: tuple[str, ...] = ()


SizeConstraint = SetSize | SameSize | Scaled | Fits | Alike | Noted | Sized
"""A further constraint on a graph; a label means that of the last specification that uses it."""
