"""Outputs: files that are written only where that loses nothing.

An output never replaces a file that the same command reads or another of its outputs, by whatever path or link each is
named. A file that is there is replaced only if it is of the output's own kind: a checkpoint by a checkpoint, a log by
a log. An empty file is of every kind.
"""

# Importing pathlib takes as long as explaining a program does.
# ruff: noqa: PTH116, PTH123

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import IO

from ilang.codegen.system.files import check_place, write_whole
from ilang.core.diagnostic import DataError
from ilang.core.record import record

HEAD_BYTES = 4096
"""Bytes from the start of a file by which its kind is told."""


@record
class FileKind:
    """A kind of file: what messages call it, and a function of a path that tells whether the file there is one.

    ``grows``: it is written line by line, so that a terminal or a pipe may stand for it; others are whole or absent.
    """

    noun: str
    holds: Callable[[str], bool]
    grows: bool = False


OutputFile = tuple[str, str, FileKind]
"""A file that a command writes: what the user calls it, such as ``--save``, its path, its kind."""
InputFile = tuple[str, str]
"""A file that a command reads: what the user calls it, and its path."""


def begins_with(*starts: bytes) -> Callable[[str], bool]:
    """Whether the file at a path begins with one of some bytes."""
    return lambda path: head(path).startswith(starts)


def head(path: str) -> bytes:
    """The first bytes of a file; none where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(HEAD_BYTES)
    except OSError:
        return b""


ARRAY = FileKind("an array of NumPy", begins_with(b"\x93NUMPY"))


def check_outputs(outputs: Sequence[OutputFile], inputs: Iterable[InputFile]) -> None:
    """Refuse outputs that would replace what the command reads, one another, or a file of another kind.

    What cannot be written is refused as well, before anything is computed for it.

    Raises:
        DataError: E0731, E0732, E0768.
    """
    known = [(file_at(path), f"{name} {path}, which is read") for name, path in inputs]
    for name, path, kind in outputs:
        place = file_at(path)
        for other, taken in known:
            if place == other:
                message = f"{name} {path} would replace {taken}"
                raise DataError("E0768", message, help=f"name another file after {name}")
        known.append((place, f"{name} {path}, which is written too"))
        check_kind(path, kind)
        if not kind.grows:
            check_place(path)


def check_kind(path: str, kind: FileKind) -> None:
    """Refuse to replace a file of another kind. Raises: DataError E0768."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return  # absent, or out of reach: writing tells which
    if stat.S_ISREG(status.st_mode) and status.st_size and not kind.holds(path):
        message = f"{path} exists and is not {kind.noun}, and would be replaced"
        raise DataError("E0768", message, help="name another file, or move this one away")


def write_output(path: str, kind: FileKind, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file whole, where no file of another kind is.

    Raises:
        DataError: E0768, E0731, E0732.
    """
    check_kind(path, kind)
    write_whole(path, write)


def file_at(path: str) -> tuple[object, ...]:
    """The file that a path leads to: equal for all its paths and links, also where it is yet to be written."""
    real = os.path.realpath(path) if "\0" not in path else path
    folder, name = os.path.split(real)
    for place, rest in ((real, ()), (folder, (name,))):
        try:
            status = os.stat(place)
        except (OSError, ValueError):
            continue
        return status.st_dev, status.st_ino, *rest
    return (real,)
