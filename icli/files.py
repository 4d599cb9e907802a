"""Standard input read, and the folder of what is kept; ``codegen/system/files.py`` reads and writes files."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ilang.core.diagnostic import DataError

if TYPE_CHECKING:
    from pathlib import Path


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


def read_standard_input() -> bytes:
    """Everything on standard input."""
    from ilang.codegen.system.files import LARGEST_PROGRAM, not_too_long, unreadable

    if sys.stdin is None:
        raise DataError(
            "E0725", "standard input is closed, so `-` reads nothing", help="name a file"
        )
    try:
        data = sys.stdin.buffer.read(LARGEST_PROGRAM + 1)
    except OSError as trouble:
        raise unreadable("standard input", trouble) from None
    return not_too_long(data, "standard input")
