"""Axes of an index expression that take their extent from an affine index in which they stand.

An axis that some index of a read is alone, or whose extent is written, is known from there. Any other axis gets the
extent with which the index stays inside its dimension, padding included (docs/language.md section 2).
"""

from __future__ import annotations

from ilang.core.calculus.affine import Affine
from ilang.core.diagnostic import ShapeError
from ilang.core.ir.graph import Assignment, Read
from ilang.core.source import Span

OpenIndex = tuple[Read, int, int]
"""An index of a read, at a dimension, that gives an axis its extent: its positions there."""


def opened_axes(node: Assignment) -> tuple[list[OpenIndex], set[Read]]:
    """The axes that indices give extents, in an order in which they can be computed; the reads that never leave theirs.

    Raises:
        ShapeError: E0570 (an index with two open axes), E0571 (an open axis that an index walks backwards), E0579 (an
            open axis that begins before the first element).
    """
    pending = [
        (read, dim, index)
        for read in node.reads
        for dim, index in enumerate(read.index)
        if index.axis() is None and index.variables()
    ]
    if not pending:
        return [], set()
    known = {index.axis() for read in node.reads for index in read.index}
    known |= {number for number, axis in enumerate(node.axes) if axis.extent is not None}
    leaving = {read for read, _, _ in pending}
    opened_reads: list[OpenIndex] = []
    stays: dict[tuple[Read, int], bool] = {}
    while pending:
        ready = [entry for entry in pending if len(_open(entry[2], known)) < 2]
        if not ready:
            read, dim, index = pending[0]
            raise _two_open(node, read.spans[dim], _open(index, known))
        before = {*known}
        for read, dim, index in ready:
            opened = _open(index, before)
            if opened:
                _check_opened(node, read, dim, opened[0])
                opened_reads.append((read, dim, opened[0]))
                known.add(opened[0])
            stays[read, dim] = bool(opened) and index.offset >= 0
        pending = [entry for entry in pending if (entry[0], entry[1]) not in stays]
    inside = {read for read in leaving if all(ok for (r, _), ok in stays.items() if r == read)}
    return opened_reads, inside


def _open(index: Affine, known: set[int | None]) -> list[int]:
    """The axes of an index whose extent is not known yet."""
    return [axis for axis in index.variables() if axis not in known]


def _check_opened(node: Assignment, read: Read, dim: int, opened: int) -> None:
    """Refuse an index from which the extent of its open axis does not follow."""
    index = read.index[dim]
    backwards = next((axis for c, axis in index.steps() if c < 0), None)
    if backwards is not None:
        raise ShapeError(
            "E0571",
            f"nothing fixes the extent of axis {node.axes[opened].name}, and this index walks "
            f"axis {node.axes[backwards].name} backwards",
            read.spans[dim],
            f"write the extent: `{node.axes[opened].name}:8`",
        )
    if len(index.variables()) == 1 and index.offset < 0:
        raise _shifted(node, read.spans[dim], opened, index)


def _two_open(node: Assignment, span: Span, opened: list[int]) -> ShapeError:
    names = [node.axes[axis].name for axis in opened]
    message = f"nothing fixes the extents of axes {' and '.join(names)} in this index"
    return ShapeError("E0570", message, span, f"write one of them: `{names[-1]}:3`")


def _shifted(node: Assignment, span: Span, opened: int, index: Affine) -> ShapeError:
    """The refusal of single elements from before the first one on: they may end with the dimension, or beyond it."""
    axis = node.axes[opened].name
    message = f"`{span.text()}` begins at position {index.offset}, and nothing says where axis {axis} ends"
    (coefficient, _), *_ = index.steps()
    step = "" if coefficient == 1 else str(coefficient)
    help_line = (
        f"write the extent, `({step}{axis}:8-{-index.offset})`; an element before the first is 0"
    )
    return ShapeError("E0579", message, span, help_line)
