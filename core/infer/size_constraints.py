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
from ilang.core.ir import operation, rows

if TYPE_CHECKING:  # what collects all constraints imports this module
    from ilang.core.infer.operations import GraphConstraints


def add_size_constraint(collected: GraphConstraints, constraint: operation.SizeConstraint) -> None:
    """Add what a size constraint requires to the constraints of its graph. Raises ShapeError E0530 to E0532."""
    match constraint:
        case operation.SetSize():
            origin = rows.Origin(f'SetSize("{constraint.label}", {constraint.size})', None)
            if constraint.size < 0:
                message = f"the size set for {constraint.label} is {constraint.size}"
                raise ShapeError("E0531", message, help="a size is 0 or more")
            says = rows.Origin(f"the size set for {constraint.label}", None)
            size = rows.Known(constraint.size, says)
            collected.constraints.append(_same(_named(collected, constraint.label), size, origin))
        case operation.SameSize():
            origin = rows.Origin(f'SameSize("{constraint.one}", "{constraint.other}")', None)
            one, other = (_named(collected, each) for each in (constraint.one, constraint.other))
            collected.constraints.append(_same(one, other, origin))
        case operation.Scaled():
            collected.constraints.append(_scaled(collected, constraint))
        case operation.Sized():
            dims = _sized(collected, constraint)
            collected.constraints += collected.scopes.constraints(constraint, dims)
        case operation.Fits():
            values = constraint.result, constraint.operand
            result, operand = (brief(collected.graph.nodes[value]) for value in values)
            says_fits = f"the constraint that {operand} fits {result}"
            shapes = (collected.shapes[value] for value in values)
            for kind, row, operand_row in zip(rows.KINDS, *shapes, strict=True):
                collected.below(
                    row, operand_row, rows.Origin(says_fits, None, f"their {kind} rows")
                )
        case operation.Alike():
            one_shape, other_shape = (
                collected.shapes[constraint.one],
                collected.shapes[constraint.other],
            )
            collected.constraints += alike(constraint, one_shape, other_shape)
        case operation.Noted():
            shape = collected.shapes[constraint.value]
            collected.constraints += collected.notes.constraints(constraint, shape)
        case _:
            assert_never(constraint)


def _sized(collected: GraphConstraints, c: operation.Sized) -> Sequence[rows.Dim]:
    """The dimensions, axes or labels of which an operation says sizes."""
    if c.of == "axes":
        return collected.node_axes[c.value]
    if c.of == "labels":
        return [collected.labels[c.value].dims[label] for label in c.labels]
    origin = rows.Origin(f"`{c.span.text()}`", c.span)
    return collected.dimensions(c.value, len(c.amounts), origin)


def _named(collected: GraphConstraints, label: str) -> rows.Dim | int:
    """The meaning of a label: an axis, or the number of a row variable. Raises ShapeError E0530."""
    labels = collected.latest.get(label)
    if labels is None:
        known = ", ".join(name for name in collected.latest if not name.startswith("."))
        message = f"no specification has a label {label}"
        raise ShapeError("E0530", message, help=f"the labels are: {known or 'none'}")
    return labels.rows[label] if label in labels.rows else labels.dims[label]


def _same(one: rows.Dim | int, other: rows.Dim | int, origin: rows.Origin) -> rows.Constraint:
    """Two axes, or rows by the numbers of their variables, have one size."""
    if isinstance(one, int) or isinstance(other, int):
        sides = [rows.opened(s) if isinstance(s, int) else rows.closed((s,)) for s in (one, other)]
        return rows.Product((sides[0],), (sides[1],), origin)
    return rows.DimEqual(one, other, origin)


def _scaled(collected: GraphConstraints, constraint: operation.Scaled) -> rows.Constraint:
    """One axis is so many times another. Raises ShapeError E0532."""
    big, small = _named(collected, constraint.big), _named(collected, constraint.small)
    if isinstance(big, int) or isinstance(small, int) or constraint.factor < 1:
        message = f"{constraint.big} cannot be {constraint.factor} times {constraint.small}"
        help_line = "a scale is at least 1, between axes and not rows"
        raise ShapeError("E0532", message, help=help_line)
    says = f'Scaled({constraint.factor}, "{constraint.big}", "{constraint.small}")'
    origin = rows.Origin(says, None)
    return rows.DimEqual(big, rows.weighted([(constraint.factor, small)], 0, origin), origin)
