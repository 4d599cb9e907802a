"""Files: regular ones only are read, programs no longer than a program may be; what is written is whole or absent."""

# Importing pathlib takes as long as explaining a program does.
# ruff: noqa: PTH105, PTH108, PTH112, PTH118, PTH122

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from typing import IO

from ilang.core.diagnostic import DataError
from ilang.core.ir.syntax import Module

LARGEST_PROGRAM = 16 << 20
"""Bytes of program text that are read at most."""

READABLE = "name a file that exists and that you may read"
"""Help on a missing file where no name is near."""

WRITTEN = "it takes the name of a file: write the program to one, such as model.i"
"""Help on a program that is given for its file."""

MOST_NAMED = 5
"""Files that a message names."""


def open_regular(path: str) -> IO[bytes]:
    """Open a regular file for reading; a pipe or a device is refused before it can hang or never end.

    Raises: DataError E0725 if it cannot be opened, E0726 if it is not a regular file.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as trouble:
        raise unreadable(path, trouble) from None
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(number, "rb")
    os.close(number)
    kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
    raise DataError("E0726", f"{path} is {kind}, not a file", help="`-` reads standard input")


def path_text(path: object, kind: str = "file") -> str:
    """The path of a file, or of ``what`` is named, as text.

    Raises: DataError E0725 if it is none.
    """
    if isinstance(path, str | bytes | os.PathLike):
        return os.fsdecode(path)
    import reprlib

    raise DataError(
        "E0725",
        f"{reprlib.repr(path)} is not the path of a {kind}",
        help='a path is text: "model.i"',
    )


def reason_of(trouble: Exception) -> str:
    """The words of the operating system for an error, else its own, else its name."""
    return getattr(trouble, "strerror", None) or str(trouble) or type(trouble).__name__


def unreadable(path: str, trouble: OSError | ValueError) -> DataError:
    """The error for a file that cannot be opened or read."""
    hint = _beside(path) if isinstance(trouble, FileNotFoundError) else READABLE
    return DataError(
        "E0725", f"{path or '(empty name)'} cannot be read: {reason_of(trouble)}", help=hint
    )


def _beside(path: str) -> str:
    """The names that the folder of a missing file has instead: one like it, or files of its kind."""
    if "~" in path[1:] or "=" in path:  # a program
        return WRITTEN
    folder, name = os.path.split(path)
    try:
        names = sorted(entry.name for entry in os.scandir(folder or ".") if entry.is_file())
    except (OSError, ValueError):
        return f"there is no folder {folder}" if folder and not os.path.isdir(folder) else READABLE
    from ilang.core.suggestion import nearest

    guess = nearest(name, names)
    if guess is not None:
        return f"did you mean {os.path.join(folder, guess)}?"
    shown_folder = folder or "this folder"
    kind = os.path.splitext(name)[1]
    alike = [other for other in names if os.path.splitext(other)[1] == kind and kind]
    if alike:
        more = ", ..." if len(alike) > MOST_NAMED else ""
        return f"{shown_folder} has {', '.join(alike[:MOST_NAMED])}{more}"
    if kind and kind[1:].isalnum():
        return f"{shown_folder} has no file that ends in {kind}"
    return READABLE


def read_program_bytes(path: str) -> bytes:
    """The bytes of a program file."""
    with open_regular(path) as stream:
        try:
            data = stream.read(LARGEST_PROGRAM + 1)
        except OSError as trouble:
            raise unreadable(path, trouble) from None
    return not_too_long(data, path)


def read_module(path: str) -> Module:
    """The definitions of a file.

    Raises: Error: DataError E0725, E0726, E0734 (the file), ModuleError, NotationError (its text).
    """
    from ilang.core.notation.files.module import decode_module, parse_module

    return parse_module(decode_module(read_program_bytes(path), path))


def not_too_long(data: bytes, path: str) -> bytes:
    """Program text that is no longer than a program may be. Raises DataError E0734."""
    if len(data) > LARGEST_PROGRAM:
        raise DataError(
            "E0734",
            f"{path} is longer than {LARGEST_PROGRAM >> 20} MiB of program text",
            help="divide the program into several files",
        )
    return data


def write_whole(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file beside its place, then move it there: it is whole or absent, whatever happens.

    A file that is replaced keeps its permissions. Ctrl-C waits until the file is whole: an archive that is left halfway
    raises errors of its own.

    Raises: DataError E0731 if it cannot be written, E0732 if its place is taken by something that is no file.
    """
    from ilang.codegen.system.concurrency import signals_held

    mode = check_place(path)
    beside = f"{path}.{os.urandom(4).hex()}.part"  # a name that no earlier call has left
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with signals_held():
        try:
            with os.fdopen(os.open(beside, flags, 0o666), "wb") as stream:
                if mode is not None:
                    os.fchmod(stream.fileno(), stat.S_IMODE(mode))
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(beside, path)
        except BaseException as failure:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            if isinstance(failure, OSError):
                raise _unwritable(path, failure) from None
            raise


def check_place(path: str) -> int | None:
    """The mode of the file at a path where a file can be written, or None where there is none yet.

    Raises: DataError E0731 if its folder cannot be written to, E0732 if something that is no file is in its place.
    """
    folder = os.path.dirname(path) or os.curdir  # noqa: PTH120
    try:
        os.stat(os.path.join(folder, ""))  # noqa: PTH116
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        mode = os.lstat(path).st_mode
    except FileNotFoundError as trouble:
        if trouble.filename == path:
            return None
        raise _unwritable(path, trouble) from None
    except (OSError, ValueError) as trouble:
        raise _unwritable(path, trouble) from None
    if not stat.S_ISREG(mode):
        raise DataError(
            "E0732", f"{path} exists and is not a regular file", help="name another file"
        )
    return mode


def _unwritable(path: str, trouble: OSError | ValueError) -> DataError:
    folder = os.path.dirname(path)  # noqa: PTH120
    missing = bool(folder) and not os.path.exists(folder)  # noqa: PTH110
    help_line = f"there is no folder {folder}" if missing else "name a file that can be written"
    return DataError(
        "E0731", f"{path or '(empty name)'} cannot be written: {reason_of(trouble)}", help=help_line
    )
