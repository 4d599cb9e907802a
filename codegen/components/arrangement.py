"""Transposes and diagonals, which an einsum of one array only arranges, as views of the array.

Example:
    in:   `...ii->i...` for an array of rank 3
    out:  Arrangement(diagonals=((1, 2),), order=(1, 0))

NumPy's einsum returns a view where nothing is computed, which can be written through where the array can.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ilang.core.record import record

Array = Any


@record
class Arrangement:
    """A new arrangement of an array: diagonals are taken, one after the other, then what is left is transposed.

    ``diagonals``: two dimensions each of what is left, which go; one of the positions along both is the last then.
    ``order``: for each dimension of the result, that of what is left.
    """

    diagonals: tuple[tuple[int, int], ...]
    order: tuple[int, ...]

    def of(self, array: Array) -> Array:
        """The view; a number where it has rank 0."""
        view = array
        for one, other in self.diagonals:
            view = view.diagonal(axis1=one, axis2=other)
        view = view.transpose(self.order)
        if self.diagonals and array.flags.writeable:
            with suppress(ValueError):  # the memory has become read-only under the array
                view.flags.writeable = True
        return view if self.order else view[()]


def arrangement(
    axes: Sequence[str], result: Sequence[str], shape: Sequence[int]
) -> Arrangement | None:
    """The arrangement by which an array becomes a result; None where that takes sums, or no array has such axes.

    Args:
        axes: the names of the dimensions of the array; equal names run together.
        result: those of the result, each once.
        shape: of the array.
    """
    extents = set(zip(axes, shape, strict=True))
    if set(axes) != set(result) or len(extents) != len(result):
        return None
    left, diagonals = list(axes), []
    for name in result:
        while 1 < left.count(name):
            one = left.index(name)
            other = left.index(name, one + 1)
            diagonals.append((one, other))
            left = [*left[:one], *left[one + 1 : other], *left[other + 1 :], name]
    return Arrangement(tuple(diagonals), tuple(left.index(name) for name in result))
