"""The shapes that arrays give to inputs whose shape nobody wrote: axis 0 is the batch.

x               (5, 3)  ->  batch row 5, output row 3
x[n, m]         (5, 3)  ->  output row 5,3
x[..b..|i->o]   (5, 2, 3) ->  batch row 5, output row 2, input row 3
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ilang.codegen.call.arguments import shape_of
from ilang.core.build.tensor import Rows
from ilang.core.diagnostic import DataError, counted
from ilang.core.explain.expression import written_rows
from ilang.core.ir.functions import AxisNote, ShapeNote, TensorParameter

EXAMPLE_SIZES = ("3", "2", "5", "7", "6", "4")


def rows_of_extents(extents: Sequence[int], note: ShapeNote | None) -> Rows:
    """The rows of an array: those that the head writes, else axis 0 as the batch row, the others as the output row.

    Args:
        extents: of the array, in memory order: batch, output and input axes. Extents that no row of the head takes
            are of the output row, where inference tells of them.
        note: what the head writes of the input; the first row variable in it has the axes that are left.
    """
    counts = [min(1, len(extents)), 0, max(len(extents) - 1, 0)]
    if note is not None:
        counts = [len(row.leading) + len(row.trailing) for row in note.rows]
        rest = max(len(extents) - sum(counts), 0)
        open_rows = [n for n, row in enumerate(note.rows) if row.variable is not None]
        for n in open_rows[:1]:
            counts[n] += rest
    first, last = counts[0], len(extents) - counts[1]
    sizes = tuple((extent, None) for extent in extents)
    return sizes[:first], sizes[last:], sizes[first:last]


def miscounted(name: str, inputs: Sequence[str], given: int) -> DataError:
    """The error for another number of arrays than a definition has inputs."""
    message = f"{name} takes {counted(len(inputs), 'array')}, and {given} are given"
    return DataError("E0756", message, help=f"its inputs are {', '.join(inputs) or 'none'}")


def rows_of_arrays(
    inputs: Sequence[TensorParameter], arrays: Sequence[Any], names: Collection[str]
) -> dict[str, Rows]:
    """The rows that arrays give to some of the inputs of a definition, by name. Raises: DataError: not an array."""
    return {
        each.name: rows_of_extents(shape_of(each.name, array), each.shape)
        for each, array in zip(inputs, arrays, strict=True)
        if each.name in names
    }


def batch_remark(name: str, extents: Sequence[int], note: ShapeNote | None) -> str:
    """A line that says which axis of an array is the batch, where no text does; else empty."""
    if note is not None or not extents:
        return ""
    return f"{name}  {'×'.join(map(str, extents))}, axis 0 is the batch"


def shape_of_extents(extents: Sequence[int], note: ShapeNote | None) -> str:
    """The rows that an array of these extents has, as a shape is written: ``5|2->3``."""
    rows = rows_of_extents(extents, note)
    batch, inner, output = (",".join(str(size) for size, _ in row or ()) for row in rows)
    return f"{batch}|{inner}->{output}"


def example_shapes(inputs: Sequence[TensorParameter], batch: str = "8") -> dict[str, str]:
    """Shapes that inputs could have, by name, as they are written: with the axes and the numbers of the heads.

    ``x[b|h,w]``, ``y`` -> ``{"x": "8|3,2", "y": "8|3"}``. Equal letters have equal sizes; ``batch`` is that of an axis
    of a batch row whose size nothing writes.
    """
    sizes: dict[str, str] = {}
    left = iter(EXAMPLE_SIZES)

    def size(axis: AxisNote, row: int) -> str:
        if isinstance(axis.size, int):
            return str(axis.size)
        return sizes.setdefault(axis.size, batch if row == 0 else next(left, EXAMPLE_SIZES[0]))

    def rows(note: ShapeNote) -> Iterator[str]:
        for number, row in enumerate(note.rows):
            axes = [size(axis, number) for axis in (*row.leading, *row.trailing)]
            yield ",".join(axes or [EXAMPLE_SIZES[0]] * (row.variable is not None and number == 2))

    return {
        each.name: f"{batch}|3" if each.shape is None else written_rows(*rows(each.shape))
        for each in inputs
    }


def shape_options(inputs: Sequence[TensorParameter], batch: str = "8") -> str:
    """Options that give each input such a shape."""
    shapes = example_shapes(inputs, batch).items()
    return " ".join(f"--shape {name}='{shape or '.'}'" for name, shape in shapes)
