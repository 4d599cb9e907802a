"""Files of arrays by name, standard input, the folder of what is kept; ``codegen/system/files.py`` reads and writes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, BinaryIO

from ilang.core.diagnostic import DataError

if TYPE_CHECKING:
    from pathlib import Path

ARRAY_FILES = (".npy", ".npz", ".csv", ".json")
"""Ends of the names of files of arrays."""


def member_of(path: str) -> tuple[str, str | None]:
    """A file of arrays, and the name of one in it where that is written: ``x.npz:name``."""
    file, colon, name = path.rpartition(".npz:")
    return (f"{file}.npz", name) if colon else (path, None)


def state_folder() -> Path | None:
    """The folder of what lasts between sessions, the history of the REPL and the lessons done; None without one."""
    from pathlib import Path

    try:
        state = os.environ.get("XDG_STATE_HOME")
        folder = (Path(state) if state else Path.home() / ".local" / "state") / "i"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, ValueError, RuntimeError):
        return None
    return folder


def standard_input() -> BinaryIO:
    """Standard input, which something is read from. Raises: DataError E0725 (it is closed)."""
    if sys.stdin is None:
        message = "standard input is closed, so `-` reads nothing"
        raise DataError("E0725", message, help="name a file")
    return sys.stdin.buffer


def read_standard_input() -> bytes:
    """Everything on standard input."""
    from ilang.codegen.system.files import LARGEST_PROGRAM, not_too_long, unreadable

    stream = standard_input()
    try:
        data = stream.read(LARGEST_PROGRAM + 1)
    except OSError as trouble:
        raise unreadable("standard input", trouble) from None
    return not_too_long(data, "standard input")
