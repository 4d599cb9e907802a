"""Tensors of functions and routines before they are a graph: what each is computed from, and what keeps its values.

Produced by ``build/functions.py`` and ``build/routines.py``, turned into nodes by ``build/emission.py`` when it is
first needed. Two tensors are one only if they are the same object: a value is computed once, whoever reads it.
"""

from __future__ import annotations

from typing import Any, Literal

from ilang.core.build.tensor import Rows
from ilang.core.ir.graph import Graph
from ilang.core.ir.operation import Logic
from ilang.core.ir.scalar import Apply, Operand, Scalar, arguments_of
from ilang.core.ir.syntax import Schedule
from ilang.core.ops import PRIMITIVES
from ilang.core.record import entity
from ilang.core.source import Span

Kind = Literal[
    "input", "parameter", "declared", "setting", "constant", "gradient", "cotangent", "merged"
]
"""Storage of values: arrays of a call, a parameter, a tensor that a routine declares, a configuration value that comes
at run time, numbers of the text or a file, what stands for a gradient or for what flows back, a sum over ranks."""


@entity
class Stored:
    """A tensor that keeps values: an assignment gives it others.

    ``rows`` is what is known of its axes, None of a row for one that is found from use. ``initial`` has what it starts
    from: an array, a number, a literal, ``range``, a ``Measured``, or None.
    """

    kind: Kind
    name: str
    rows: Rows
    initial: Any
    span: Span
    dtype: str | None = None
    owner: Owner | None = None


@entity
class NumberTensor:
    """A number: one output axis of size 1, which stretches."""

    value: float | int
    span: Span


@entity
class Computed:
    """The result of one operation."""

    operands: tuple[Tensor, ...]
    scalar: Scalar
    acc: str
    logic: Logic
    text: str
    schedule: Schedule | None
    span: Span


@entity
class ComponentCall:
    """A call of a component of another notation; its outputs are ``Output`` values."""

    graph: Graph
    operands: tuple[Tensor, ...]
    span: Span


@entity
class Output:
    """One output of a component."""

    of: ComponentCall
    number: int
    span: Span


@entity
class Custom:
    """A value with a gradient of its own.

    ``gradients`` pairs a value that it is computed from with what flows back to that, where ``cotangent`` flows back to
    it. ``refused``: it has none, and asking for it is an error.
    """

    value: Tensor
    name: str
    span: Span
    gradients: tuple[tuple[Tensor, Tensor], ...] = ()
    cotangent: Stored | None = None
    refused: bool = False
    tracked: bool = False


@entity
class Measured:
    """``dim(x, "n")``: the extent of an axis of a tensor, by its letter or its label."""

    value: Tensor
    axis: str
    span: Span


Tensor = Stored | NumberTensor | Computed | Output | Custom


def constant(name: str, rows: Rows, values: object, span: Span) -> Stored:
    """A tensor of numbers that the text or a file has."""
    return Stored("constant", name, rows, values, span)


def operands(value: Tensor) -> tuple[Tensor, ...]:
    """The values that a value is computed from."""
    match value:
        case Stored() | NumberTensor():
            return ()
        case Computed():
            return value.operands
        case Output():
            return value.of.operands
        case Custom():
            return (value.value,)


def flowing(value: Tensor) -> tuple[Tensor, ...]:
    """The values that something flows back to from a value."""
    match value:
        case Computed():
            numbers = _differentiable(value.scalar)
            return tuple(each for n, each in enumerate(value.operands) if n in numbers)
        case Custom() if not value.tracked:
            return tuple(operand for operand, _ in value.gradients)
        case _:
            return operands(value)


def _differentiable(scalar: Scalar) -> frozenset[int]:
    """The operands of a scalar function that it has derivatives with respect to: not those that are only compared."""
    if isinstance(scalar, Operand):
        return frozenset((scalar.number,))
    parts = () if is_logical(scalar) else arguments_of(scalar)
    parts = parts[1:] if isinstance(scalar, Apply) and scalar.primitive == "where" else parts
    return frozenset().union(*map(_differentiable, parts))


def is_logical(scalar: Scalar) -> bool:
    """Whether a scalar function gives a bool, which arithmetic takes as 0 or 1."""
    return isinstance(scalar, Apply) and PRIMITIVES[scalar.primitive].kind in ("compare", "logic")


def name_of(value: Tensor) -> str:
    """A tensor as messages call it."""
    match value:
        case Stored() | Custom():
            return value.name
        case Computed():
            return value.text
        case _:
            return value.span.text()


@entity
class Owner:
    """A part of a path: a use of a definition, whose parameters and instances have names.

    ``parent`` is None for the definition that is run. ``base`` is its own name there; ``definition`` what it is a use
    of. Where several uses of one definition have one name, numbers tell them apart.
    """

    parent: Owner | None
    base: str
    definition: str
    held: dict[str, Stored]
    uses: list[Owner]
    span: Span

    def use(self, base: str, definition: str, span: Span) -> Owner:
        """A new use of a definition inside this one."""
        inner = Owner(self, base, definition, {}, [], span)
        self.uses.append(inner)
        return inner

    def path(self) -> tuple[str, ...]:
        """The names from the definition that is run down to here."""
        if self.parent is None:
            return ()
        alike = [
            each
            for each in self.parent.uses
            if (each.base, each.definition) == (self.base, self.definition)
        ]
        name = self.base if len(alike) == 1 else f"{self.base}_{alike.index(self) + 1}"
        return (*self.parent.path(), name)
