"""Affine indices, and conditions on them, over numbered axes (in graphs) or loop variables (in kernels)."""

from __future__ import annotations

from ilang.core.record import record


@record
class Affine:
    """An index of one dimension: the sum of ``coefficient * axis`` over ``terms``, plus ``offset``."""

    terms: tuple[tuple[int, int], ...]
    offset: int = 0

    def axis(self) -> int | None:
        """The axis that this index is exactly (coefficient 1, offset 0), or None."""
        if len(self.terms) == 1 and self.terms[0][0] == 1 and self.offset == 0:
            return self.terms[0][1]
        return None

    def is_whole(self) -> bool:
        """Whether the index is one axis, so that it walks the whole dimension and never leaves it."""
        return self.axis() is not None


def walks(axis: int) -> Affine:
    """The index that is one axis."""
    return Affine(((1, axis),))


@record
class Within:
    """Holds where an index is inside a dimension: at least 0 and below the extent of size number ``size``."""

    index: Affine
    size: int
