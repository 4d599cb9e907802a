"""Affine indices and guards over numbered axes (in graphs) or loop variables (in kernels)."""

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


def walks(axis: int) -> Affine:
    """The index that is one axis."""
    return Affine(((1, axis),))


@record
class Guard:
    """Holds where the sum of ``coefficient * axis`` over ``terms`` plus ``offset`` is at least 0."""

    terms: tuple[tuple[int, int], ...]
    offset: int
