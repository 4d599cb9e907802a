"""``dim(x, "n")``: the extent of an axis, by the letter that a head writes for it, or by its label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ilang.core.build.routines import Built
from ilang.core.build.values import Measured, Stored
from ilang.core.diagnostic import DataError, MeaningError, nearest
from ilang.core.ir.operation import Noted
from ilang.core.ir.rows import Known, known_axes

if TYPE_CHECKING:
    from ilang.core.infer.inferred import Inferred


def extent_of_axis(built: Built, inferred: Inferred, cell: Stored) -> int:
    """The extent that a tensor is asked for.

    Raises:
        MeaningError: E0289 (it has no such axis). DataError: E0766 (the extent comes at run time).
    """
    asked = cell.initial
    assert isinstance(asked, Measured)
    value = built.measured[cell]
    names: dict[str, Known] = {}
    rows = inferred.shapes[value]
    for label, axis in zip(
        inferred.units(value), (a for k in (0, 2, 1) for a in known_axes(rows[k])), strict=True
    ):
        if label is not None:
            names.setdefault(label, axis)
    for constraint in built.graph.constraints:
        if isinstance(constraint, Noted) and constraint.value == value:
            for note, row in zip(constraint.note.rows, rows, strict=True):
                axes = known_axes(row)
                for n, each in enumerate(note.leading):
                    names.setdefault(str(each.size), axes[n])
                for n, each in enumerate(reversed(note.trailing), 1):
                    names.setdefault(str(each.size), axes[-n])
    if asked.axis in names:
        size = names[asked.axis].size
        if not isinstance(size, int):
            message = f"the size of {asked.axis} comes at run time, and this reads it"
            raise DataError("E0766", message, asked.span, "give a number in --shape")
        return size
    guess = nearest(asked.axis, list(names))
    listed = f"it has {', '.join(names)}" if names else "write its shape in the head: `x[b|n]`"
    message = f"nothing calls an axis of this tensor {asked.axis}"
    help_line = f"did you mean {guess}?" if guess else listed
    raise MeaningError("E0289", message, asked.span, help_line)
