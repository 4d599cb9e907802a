"""Streams of CUDA as other libraries have them: a handle, or an object that has one.

Example: 140234, torch.cuda.current_stream(), cupy.cuda.get_current_stream() and whatever has ``__cuda_stream__`` (the
protocol of cuda.core) are streams; 0 and 1 are the one that everything waits for, 2 is that of the calling thread.
"""

from __future__ import annotations

import operator
from typing import Any

from ilang.codegen.call.target import DEVICES
from ilang.core.diagnostic import DataError

DEFAULT_STREAM = 1
"""The number of the stream that everything waits for: the handle of CUDA's legacy stream."""

STREAM_OF_THREAD = 2
"""The handle that means another stream in every thread of the host."""

ATTRIBUTES = ("cuda_stream", "ptr", "handle")
"""The names of the handle of a stream in torch, CuPy and Numba."""
HELP = "give a handle as an int, or an object that has one: a stream of torch, CuPy, Numba or cuda.core"


def stream_handle(value: Any, target: str) -> int:
    """The handle of what a call is given as a stream.

    Raises:
        DataError: E0767 (it is no stream, or nothing of the target runs on one).
    """
    if target not in DEVICES:
        raise DataError(
            "E0767",
            f"stream= is for a GPU, and the target is {target}",
            help='give target="cuda" (or "cuda-emulated") with it, or leave it out',
        )
    handle = None if isinstance(value, bool) else _handle(value)
    if handle is None:
        shown_stream = (
            f"{value}" if isinstance(value, (bool, int)) else f"of type {type(value).__name__}"
        )
        raise DataError(
            "E0767", f"stream= is {shown_stream}, which is no stream of CUDA", help=HELP
        )
    return handle or DEFAULT_STREAM


def named_stream(name: str, value: Any) -> int:
    """The stream that an array names in its ``__cuda_array_interface__``; 0 where it names none.

    Raises:
        DataError: E0767 (it is no stream, or 0, which the interface leaves open).
    """
    if value is None:
        return 0
    handle = None if isinstance(value, bool) else _number(value)
    if handle is None:
        message = f"{name} names {value!r} as its stream, which is no stream of CUDA"
        raise DataError("E0767", message, help="an array names the handle of a stream, or None")
    if not handle:
        raise ambiguous(f"{name} names stream 0")
    return handle


def ambiguous(subject: str) -> DataError:
    """The refusal of a 0 where libraries tell each other of streams."""
    message = f"{subject}, which may be the legacy default stream or that of a thread"
    return DataError(
        "E0767",
        message,
        help="say 1 for the legacy default stream, 2 for that of a thread, or None",
    )


def _handle(value: Any) -> int | None:
    """A number of at least 0; None for what has none."""
    protocol = getattr(value, "__cuda_stream__", None)
    if protocol is not None:
        pair = protocol() if callable(protocol) else protocol
        return _number(pair[1]) if isinstance(pair, tuple) and len(pair) == 2 else None
    for name in ATTRIBUTES:
        if hasattr(value, name):
            handle = getattr(value, name)
            return _number(getattr(handle, "value", handle))
    return _number(value)


def _number(value: Any) -> int | None:
    try:
        number = operator.index(value)
    except TypeError:
        return None
    return number if 0 <= number < 1 << 64 else None
