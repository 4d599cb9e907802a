"""Transposes and diagonals, which an einsum of one array only arranges, as views of the array.

Example:
    in:   `...ii->i...` for an array of rank 3
    out:  the diagonal of dimensions 1 and 2, then transposed: order (1, 0)

NumPy's einsum returns a view where nothing is computed, which can be written through where the array can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

Array = Any


def arrangement(
    axes: Sequence[str], result: Sequence[str], shape: Sequence[int]
) -> Callable[[Array], Array] | None:
    """The function that views an array as a result; None where that takes sums, or no array has such axes.

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
    return partial(_view, diagonals, [left.index(name) for name in result])


def _view(diagonals: Sequence[tuple[int, int]], order: Sequence[int], array: Array) -> Array:
    """The view of an array; a number where it has rank 0.

    Args:
        diagonals: pairs of dimensions of what is left, which go; the position along both is the last one then.
        order: for each dimension of the result, that of what is left.
        array: any.
    """
    view = array
    for one, other in diagonals:
        view = view.diagonal(axis1=one, axis2=other)
    view = view.transpose(order)
    if diagonals and array.flags.writeable:
        with suppress(ValueError):  # the memory has become read-only under the array
            view.flags.writeable = True
    return view if order else view[()]
