"""Constraints that stand in a graph beside its operations, to constraints of rows and axes.

Example, of the labels of specifications and of two values:
    SetSize("k", 3)           k = 3
    Scaled(2, "o", "i")       o = 2i
    Fits(t, x)                t ⊑ x in every row
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from ilang.core.diagnostic import ShapeError
from ilang.core.infer.notes import alike, brief
from ilang.core.ir.operation import (
    Alike,
    Fits,
    Noted,
    SameSize,
    Scaled,
    SetSize,
    SizeConstraint,
    Sized,
)
from ilang.core.ir.rows import (
    KINDS,
    Dim,
    DimEqual,
    Known,
    Origin,
    Product,
    closed,
    opened,
    weighted,
)

if TYPE_CHECKING:  # what collects all constraints makes one of these
    from ilang.core.infer.operations import GraphConstraints


class SizeConstraintCollector:
    """The collector that adds size constraints to those that are collected of a graph."""

    def __init__(self, collecting: GraphConstraints) -> None:
        self.collecting = collecting

    def add(self, constraint: SizeConstraint) -> None:
        """Add what one of them requires. Raises ShapeError E0530 to E0532."""
        collecting = self.collecting
        match constraint:
            case SetSize():
                origin = Origin(f'SetSize("{constraint.label}", {constraint.size})', None)
                if constraint.size < 0:
                    message = f"the size set for {constraint.label} is {constraint.size}"
                    raise ShapeError("E0531", message, help="a size is 0 or more")
                size = Origin(f"the size set for {constraint.label}", None)
                self._same(
                    self._named(constraint.label), Known(constraint.size, False, None, size), origin
                )
            case SameSize():
                origin = Origin(f'SameSize("{constraint.one}", "{constraint.other}")', None)
                self._same(self._named(constraint.one), self._named(constraint.other), origin)
            case Scaled():
                self._scaled(constraint)
            case Sized():
                self.collecting.constraints += collecting.scopes.constraints(
                    constraint, self._sized(constraint)
                )
            case Fits():
                result, operand = (
                    brief(collecting.graph.nodes[value])
                    for value in (constraint.result, constraint.operand)
                )
                says = f"the constraint that {operand} fits {result}"
                shapes = collecting.shapes[constraint.result], collecting.shapes[constraint.operand]
                for kind, row, operand_row in zip(KINDS, *shapes, strict=True):
                    collecting.below(row, operand_row, Origin(says, None, f"their {kind} rows"))
            case Alike():
                shapes = collecting.shapes[constraint.one], collecting.shapes[constraint.other]
                self.collecting.constraints += alike(constraint, *shapes)
            case Noted():
                self.collecting.constraints += collecting.notes.constraints(
                    constraint, collecting.shapes[constraint.value]
                )
            case _:
                assert_never(constraint)

    def _sized(self, c: Sized) -> Sequence[Dim]:
        """The dimensions, axes or labels of which an operation says sizes."""
        if c.of == "axes":
            return self.collecting.node_axes[c.value]
        if c.of == "labels":
            return [self.collecting.labels[c.value].dims[label] for label in c.labels]
        return self.collecting.dimensions(
            c.value, len(c.amounts), Origin(f"`{c.span.text()}`", c.span)
        )

    def _named(self, label: str) -> Dim | int:
        """The meaning of a label: an axis, or the number of a row variable."""
        labels = self.collecting.latest.get(label)
        if labels is None:
            known = (
                ", ".join(name for name in self.collecting.latest if not name.startswith("."))
                or "none"
            )
            message = f"no specification has a label {label}"
            raise ShapeError("E0530", message, help=f"the labels are: {known}")
        return labels.rows[label] if label in labels.rows else labels.dims[label]

    def _same(self, one: Dim | int, other: Dim | int, origin: Origin) -> None:
        if isinstance(one, int) or isinstance(other, int):
            sides = [opened(s) if isinstance(s, int) else closed((s,)) for s in (one, other)]
            self.collecting.constraints.append(Product((sides[0],), (sides[1],), origin))
        else:
            self.collecting.constraints.append(DimEqual(one, other, origin))

    def _scaled(self, constraint: Scaled) -> None:
        big, small = self._named(constraint.big), self._named(constraint.small)
        if isinstance(big, int) or isinstance(small, int) or constraint.factor < 1:
            message = f"{constraint.big} cannot be {constraint.factor} times {constraint.small}"
            help_line = "a scale is at least 1, between axes and not rows"
            raise ShapeError("E0532", message, help=help_line)
        says = f'Scaled({constraint.factor}, "{constraint.big}", "{constraint.small}")'
        origin = Origin(says, None)
        total = weighted([(constraint.factor, small)], 0, origin)
        self.collecting.constraints.append(DimEqual(big, total, origin))
