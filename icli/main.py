"""The entry of the command line: find the command, run it, end with a status and never with a traceback.

Start-up is decided by imports, so ``i --version`` imports nothing and a command imports only what it uses.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ilang.icli.commands import COMMANDS

NARROW = 20
"""Columns that every terminal has."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status (docs/language.md section 8)."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    try:
        _open_standard_streams()
        return _dispatch(tokens)
    except BaseException as failure:
        from ilang.icli.failure import report

        return report(failure, tokens)


def _dispatch(tokens: list[str]) -> int:
    """Find the command that the tokens name, and run it on the rest."""
    first = tokens[0] if tokens else "--help"
    if "_I_COMPLETE" in os.environ:
        from ilang.icli.completion import complete

        return complete(os.environ["_I_COMPLETE"])
    if first in ("--version", "-V"):
        if len(tokens) > 1:
            from ilang.icli.refusals import too_many

            raise too_many(first, tokens[1])
        from ilang import __version__

        return _say(f"i {__version__}\n")
    if first in ("--help", "-h", "help"):
        return _help(first, tokens[1:])
    if first in COMMANDS:
        return _run(tokens)

    from ilang.icli.refusals import unknown_command

    raise unknown_command(first, tuple(COMMANDS))


def _help(word: str, rest: list[str]) -> int:
    """Print the page of ``i help``, ``i help COMMAND`` and their like."""
    if not rest or rest in (["--help"], ["-h"]):
        return _say(overview())
    if len(rest) > 1:
        from ilang.icli.refusals import too_many

        raise too_many(f"{word} {rest[0]}", rest[1])
    if rest[0] in COMMANDS:
        return _run([rest[0], "--help"])

    from ilang.icli.refusals import unknown_command

    raise unknown_command(rest[0], tuple(COMMANDS), "help ")


def _run(tokens: list[str]) -> int:
    """Run the command that the first token names; only its module is imported."""
    import atexit
    import gc

    gc.set_threshold(
        400_000, 30, 100
    )  # programs are millions of records and no cycles: half the time of large ones
    atexit.register(gc.freeze)  # a process that ends looks for no cycles in what goes with it

    from ilang.icli.later import imported_later

    with imported_later("datetime", "gettext", "inspect", "uuid"):
        from click.exceptions import Exit

    from ilang.icli.group import GROUP
    from ilang.icli.screen import Screen

    screen = Screen(tokens)
    try:
        with GROUP.make_context("i", [*tokens], obj=screen) as context:
            status: int = GROUP.invoke(context)
    except Exit as ended:
        status = ended.exit_code
    screen.close()
    return status


def _say(text: str) -> int:
    """Print a text in ASCII; when the stream is in order and no line is to be folded, without importing anything."""
    if sys.stdout is not None and text.isascii() and not (_is_long(text) and sys.stdout.isatty()):
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            pass  # the screen meets the same trouble, and names it
        else:
            return 0

    from ilang.icli.screen import Screen

    screen = Screen()
    screen.write(text)
    screen.close()
    return 0


def _is_long(text: str) -> bool:
    """Whether a line of a text may be too long for a narrow terminal."""
    return any(NARROW < len(line) for line in text.split("\n"))


def overview() -> str:
    """The page of ``i --help``."""
    rows = "".join(f"  {name:<12}{summary}\n" for name, summary in COMMANDS.items())
    return (
        "Array programs, compiled to C or CUDA.\n\n"
        "Usage: i COMMAND ...\n\n"
        f"{rows}\n"
        "In a program each letter is an axis, and `~` stands before the axes of the\n"
        "result. `>>` passes a result on to the next expression.\n\n"
        "Try:   i run '+ij~i' '[[1, 2], [3, 4]]'    the sum of each row\n"
        "       i explain 'ik*kj~ijk >> +ijk~ij'    a matrix product\n"
        "Help:  i COMMAND --help; i explain CODE for an error code, i explain words for\n"
        "       every sign, function and word that has a page; i --version\n"
    )


def _open_standard_streams() -> None:
    """Fill closed standard streams, so that no file this process opens becomes one of them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
