"""Standard input read; ``codegen/system/files.py`` reads and writes files."""

from __future__ import annotations

import sys

from ilang.core.diagnostic import DataError


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
