"""Standard input read, and files written whole or not at all; ``codegen/runtime/files.py`` reads files."""

# Importing pathlib takes as long as explaining a program does.
# ruff: noqa: PTH105, PTH108

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from typing import IO

from ilang.core.diagnostic import DataError


def read_standard_input() -> bytes:
    """Everything on standard input."""
    from ilang.codegen.runtime.files import LARGEST_PROGRAM, not_too_long, unreadable

    if sys.stdin is None:
        raise DataError("E0725", "standard input is closed, so `-` reads nothing")
    try:
        data = sys.stdin.buffer.read(LARGEST_PROGRAM + 1)
    except OSError as trouble:
        raise unreadable("standard input", trouble) from None
    return not_too_long(data, "standard input")


def write_whole(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside its place, then move it there: it is whole or absent, whatever happens.

    A file that is replaced keeps its permissions.

    Raises: DataError E0731 if it cannot be written, E0732 if its place is taken by something that is no file.
    """
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        mode = None  # absent, or out of reach: opening the file beside it says which
    if mode is not None and not stat.S_ISREG(mode):
        raise DataError("E0732", f"{path} exists and is not a regular file")
    beside = f"{path}.{os.getpid()}.part"
    try:
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as trouble:
        raise _unwritable(path, trouble) from None
    try:
        with os.fdopen(number, "wb") as stream:
            if mode is not None:
                os.fchmod(number, stat.S_IMODE(mode))
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except BaseException as failure:
        _remove(beside)
        if isinstance(failure, OSError):
            raise _unwritable(path, failure) from None
        raise


def _unwritable(path: str, trouble: OSError | ValueError) -> DataError:
    reason = trouble.strerror if isinstance(trouble, OSError) and trouble.strerror else str(trouble)
    return DataError("E0731", f"{path or '(empty name)'} cannot be written: {reason}")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
