"""Arrays as text."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ilang.core.dtype import NUMPY_NAMES
from ilang.icli.shapes import shape_text

DTYPES = {name: dtype for dtype, name in NUMPY_NAMES.items()}
MANY = 1000
"""Elements from which on an array is shown by its corners."""
DIGITS = 6
"""Digits after a point that are shown at most."""


def array_text(
    name: str,
    array: np.ndarray[Any, np.dtype[Any]],
    width: int | None = None,
    precision: int = DIGITS,
    whole: bool = False,
) -> str:
    """A line of name, shape and type, then the values as NumPy writes them; lines are broken only at ``width``.

    ``precision`` is the most digits after a point; large arrays are shown ``whole``, or by their corners.
    """
    array = np.asarray(array)
    values = np.array2string(
        array,
        max_line_width=width or sys.maxsize,
        precision=precision,
        threshold=sys.maxsize if whole else MANY,
        floatmode="maxprec",
        legacy=False,
    )
    return f"{head_text(name, array)}\n{values}\n"


def head_text(name: str, array: np.ndarray[Any, np.dtype[Any]]) -> str:
    """Name, shape and element type of an array in one line."""
    dtype = DTYPES.get(array.dtype.name, array.dtype.name)
    return f"{name}  {shape_text(array.shape)}  {dtype}"
