"""``i fmt``: lay out files in the one standard way."""

from __future__ import annotations

import os
from functools import partial

from ilang.codegen.system.files import read_program_bytes, write_whole
from ilang.icli.command import Command, CommandOperand, Option, Request
from ilang.icli.files import read_standard_input
from ilang.icli.folders import program_files
from ilang.icli.programs import all_of
from ilang.icli.screen import Screen


def run(request: Request, screen: Screen) -> int:
    """Rewrite each file whose layout is not standard; with ``-``, filter standard input."""
    changed = all_of(program_files(request.operands), partial(_format, request, screen))
    return int(any(changed) and (request.has("--check") or request.has("--diff")))


def _format(request: Request, screen: Screen, path: str) -> bool:
    """Format one file, as far as the options allow; whether its layout was another.

    Raises: Error (it cannot be read, or is not in the language).
    """
    from ilang.core.notation.files.layout import format_module
    from ilang.core.notation.files.module import decode_module

    filters = path == "-"
    name = "<stdin>" if filters else path
    before = read_standard_input() if filters else read_program_bytes(path)
    after = format_module(decode_module(before, name)).encode()
    if request.has("--diff"):
        screen.write_exact(_difference(name, before, after))
    elif filters and not request.has("--check"):
        screen.write_exact(after.decode())
    elif after != before and not filters:
        if not request.has("--check"):
            write_whole(os.path.realpath(path), lambda stream: stream.write(after))
        screen.write_path(path)
    return after != before


def _difference(name: str, before: bytes, after: bytes) -> str:
    """The lines that change, as ``diff -u`` writes them."""
    from difflib import unified_diff

    old, new = (each.decode().splitlines(keepends=True) for each in (before, after))
    lines = unified_diff(old, new, name, f"{name} formatted")
    ended = (line if line.endswith("\n") else f"{line}\n" for line in lines)
    return "".join(ended)


COMMAND = Command(
    "fmt",
    "Format files; print the names of those that changed.",
    run,
    (CommandOperand("program", "FILE|FOLDER|-...", "program", required=True, nargs=-1),),
    (
        Option("--check", None, "Change nothing; exit with status 1 if a file would change"),
        Option("--diff", None, "As --check, and print what would change"),
    ),
)
