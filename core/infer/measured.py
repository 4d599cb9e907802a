"""``dim(x, "n")``: the extent of an axis, by the letter that a head writes for it, or by its label."""

from __future__ import annotations

from ilang.core.diagnostic import DataError, MeaningError
from ilang.core.infer.inferred import Inferred
from ilang.core.ir.operation import Noted
from ilang.core.ir.rows import Known, known_axes
from ilang.core.source import Span
from ilang.core.suggestion import did_you_mean


def extent_of_axis(inferred: Inferred, value: int, axis: str, span: Span) -> int:
    """The extent of an axis of a value.

    Args:
        inferred: the solved rows of the graph.
        value: which of its values.
        axis: the letter, the name or the label of the axis.
        span: where the text asks for it.

    Raises:
        MeaningError: E0289 (it has no such axis). DataError: E0766 (the extent comes at run time).
    """
    names: dict[str, Known] = {}
    rows = inferred.shapes[value]
    for label, known in zip(
        inferred.units(value), (a for k in (0, 2, 1) for a in known_axes(rows[k])), strict=True
    ):
        if label is not None:
            names.setdefault(label, known)
    for constraint in inferred.graph.constraints:
        if isinstance(constraint, Noted) and constraint.value == value:
            for note, row in zip(constraint.note.rows, rows, strict=True):
                axes = known_axes(row)
                for n, each in enumerate(note.leading):
                    names.setdefault(str(each.size), axes[n])
                for n, each in enumerate(reversed(note.trailing), 1):
                    names.setdefault(str(each.size), axes[-n])
    if axis in names:
        size = names[axis].size
        if not isinstance(size, int):
            message = f"the size of {axis} comes at run time, and this reads it"
            raise DataError("E0766", message, span, "give a number in --shape")
        return size
    listed = f"it has {', '.join(names)}" if names else "write its shape in the head: `x[b|n]`"
    message = f"nothing calls an axis of this tensor {axis}"
    help_line = did_you_mean(axis, list(names), listed)
    raise MeaningError("E0289", message, span, help_line)
