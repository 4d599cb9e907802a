"""``i fmt``: lay out a file in the one standard way."""

from __future__ import annotations

import os

from ilang.codegen.runtime.files import read_program_bytes, write_whole
from ilang.icli.command import Command, CommandOperand, Option, Request
from ilang.icli.files import read_standard_input
from ilang.icli.screen import Screen


def run(request: Request, screen: Screen) -> int:
    """Rewrite the file if its layout is not standard; with ``-``, filter standard input."""
    from ilang.core.notation.layout import format_module
    from ilang.core.notation.module import decode_module

    path = request.operands[0]
    if path == "-":
        given = read_standard_input()
        tidy = format_module(decode_module(given, "<stdin>"))
        if not request.has("--check"):
            screen.write_exact(tidy)
        return int(request.has("--check") and tidy.encode() != given)
    before = read_program_bytes(path)
    after = format_module(decode_module(before, path)).encode()
    if after == before:
        return 0
    if not request.has("--check"):
        write_whole(os.path.realpath(path), lambda stream: stream.write(after))
    screen.write_path(path)
    return int(request.has("--check"))


COMMAND = Command(
    "fmt",
    "Format a file; print its name if it changed.",
    run,
    (CommandOperand("program", "FILE|-", "program"),),
    (Option(("--check",), None, "Change nothing; exit with status 1 if a file would change"),),
)
