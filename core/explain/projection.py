"""The dimension of each tensor that each axis walks, and how a result is written, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ilang.core.calculus.affine import Affine
from ilang.core.explain.expression import Spelling, number_text, subscript
from ilang.core.record import record


@record
class ProjectionRow:
    """A tensor, and for each axis the dimension it walks (``·`` where it walks none).

    ``index`` is the whole index, ``[n,2y+u]``, where it is more than one axis a dimension; else empty.
    """

    tensor: str
    index: str
    cells: tuple[str, ...]


def projection_row(
    tensor: str,
    index: Sequence[Affine],
    axes: Sequence[str],
    size: Spelling,
    source: Spelling = str,
) -> ProjectionRow:
    """The row of an index over named axes; ``size`` names the sizes in it, ``source`` what is looked up."""
    cells = []
    for axis in range(len(axes)):
        dims = [str(d) for d, part in enumerate(index) if axis in part.variables()]
        cells.append(",".join(dims) or "·")
    whole = all(part.axis() is not None for part in index)
    return ProjectionRow(
        tensor, "" if whole else subscript(index, axes.__getitem__, size, source), tuple(cells)
    )


WRITTEN_ONCE = "every element is written once, and all of them are"


def written(reduced: Sequence[str], injective: bool, surjective: bool, start: float) -> str:
    """The reason why elements start from a neutral element: axes that are reduced, elements met again or never."""
    reasons = []
    if reduced:
        reasons.append(f"{' '.join(reduced)} {'are' if reduced[1:] else 'is'} reduced")
    elif not injective:
        reasons.append("some elements are written more than once")
    if not surjective:
        reasons.append("not every element is written")
    because = " and ".join(reasons) or "the parts are written one by one"
    return f"{because}, so elements start from {number_text(start)}"
