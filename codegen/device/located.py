"""Arrays of devices as whoever has them says: where they are, and when they are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ilang.core.record import record


@record
class Located:
    """An array that somebody has on a device: where, and the stream that it is ready on; 0 where it is on each.

    ``owner`` keeps the memory alive; ``strides`` are in bytes, None for row-major order.
    """

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stream: int
    owner: Any
    is_readonly: bool = False
    strides: Sequence[int] | None = None

    def stand_in(self) -> Any:
        """An array of NumPy with this shape and element type, and no elements of its own, for checks."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)

    def is_plain(self) -> bool:
        """Whether the elements are in row-major order, dimensions of one element aside."""
        if self.strides is None or 0 in self.shape:
            return True
        step = self.dtype.itemsize
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return True
