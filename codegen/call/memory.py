"""Memory that compiled programs are given: arrays as arguments, workspaces, and what there is too little for."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import _cffi_backend as backend
import numpy as np

from ilang.core.diagnostic import DataError
from ilang.core.machine import CPU

LARGEST_SPACE = 2**62
"""A program asks for more where its extents do not fit."""

ALIGNMENT = CPU.memory.line_bytes
"""The alignment of workspaces, so that what the layout aligns in them is aligned."""

CHARS: Final = backend.new_array_type(
    backend.new_pointer_type(backend.new_primitive_type("char")), None
)
argument: Final = functools.partial(backend.from_buffer, CHARS)
"""The argument of a function for a contiguous array: points to its elements, and keeps it alive."""

_NUMBER: Final = backend.new_primitive_type("uintptr_t")


def address(pointer: Any) -> int:
    """The address of an argument or a function."""
    return int(backend.cast(_NUMBER, pointer))


def new_space(count: int) -> Any:
    """``count`` bytes, aligned, as an argument of a call. Raises DataError (E0713) if there is no memory."""
    try:
        bytes_ = np.empty(count + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError):
        raise too_large("the workspace", count) from None
    start = -int(bytes_.ctypes.data) % ALIGNMENT
    return argument(bytes_[start : start + count])


NO_SPACE: Final = new_space(ALIGNMENT)
"""The workspace of programs that need none."""


def bytes_of(shape: Sequence[int], dtype: np.dtype[Any]) -> int:
    """The bytes of an array."""
    return math.prod(shape) * dtype.itemsize


@contextmanager
def fitting(subject: str, count: int) -> Iterator[None]:
    """Make arrays of so many bytes together. Raises DataError (E0713) if there is no memory."""
    if LARGEST_SPACE < count:
        raise too_large(subject, count)
    try:
        yield
    except MemoryError:
        raise too_large(subject, count) from None


def too_large(subject: str, count: int | None = None) -> DataError:
    """The error for what does not fit into memory: so many bytes, where that is known."""
    if count is None:
        size = ""
    elif count <= LARGEST_SPACE:
        size = f": {count:,} bytes"
    else:
        size = ": more than 2^62 bytes"
    message = f"there is not enough memory for {subject}{size}"
    return DataError("E0713", message, help="use smaller arrays, or more memory")
