"""The manual page of ``i``, in roff, out of the commands as click has them: ``python -m ilang.icli.manual > i.1``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from ilang import __version__
from ilang.icli.command import CommandOperand, Option
from ilang.icli.commands import COMMANDS
from ilang.icli.group import GROUP

MOST_CHOICES = 12
"""Words that an option takes, which a page lists."""
STATUSES = (
    ("0", "done"),
    ("1", "there is a mistake in the program or its data"),
    ("2", "there is a mistake in the command line"),
    ("3", "a tool, such as the C compiler, is missing or failed"),
    ("70", "a bug in i"),
    ("130", "interrupted"),
)
VARIABLES = (
    ("CC, NVCC, CXX", "the compilers of C, of CUDA, and of the emulator of a GPU"),
    ("EDITOR, PAGER", "what the REPL edits definitions with, and shows long answers with"),
    ("I_CACHE_DIR", "the folder of compiled programs; else $XDG_CACHE_HOME/i or ~/.cache/i"),
    ("I_VERSIONS", "programs that a component compiles for the extents of its arrays; default: 16"),
    ("NO_COLOR", "if it is set, nothing is colored"),
    ("XDG_STATE_HOME", "the folder of the history of the REPL; else ~/.local/state"),
)


def manual() -> str:
    """The whole page."""
    context = click.Context(GROUP, info_name="i")
    lines = [
        f'.TH I 1 "" "i {__version__}" "User commands"',
        ".SH NAME",
        r"i \- array programs, compiled to C or CUDA",
        ".SH SYNOPSIS",
        r".B i",
        r".I COMMAND \fR...",
        ".SH DESCRIPTION",
        "In a program each letter is an axis, and ~ stands before the axes of the result:",
        _bold("+ij~i"),
        "is the sum of each row, and >> passes a result on to the next expression.",
        ".SH COMMANDS",
    ]
    for name in COMMANDS:
        command = GROUP.get_command(context, name)
        assert command is not None
        lines += _command(name, command, click.Context(command, context, info_name=name))
    lines += [".SH EXIT STATUS", *_list(STATUSES), ".SH ENVIRONMENT", *_list(VARIABLES)]
    return "\n".join(lines) + "\n"


def _command(name: str, command: click.Command, context: click.Context) -> Iterator[str]:
    """A command: its usage, what it does, its options, and what its page ends with."""
    operands = [each.metavar or "" for each in command.params if isinstance(each, CommandOperand)]
    yield f".SS i {name} {_escaped(' '.join(operands))}".rstrip()
    yield _escaped(command.help or "")
    for each in command.params:
        if not isinstance(each, Option):
            continue
        record = each.get_help_record(context)
        if record is not None and isinstance(each.takes, tuple) and MOST_CHOICES < len(each.takes):
            record = record[0], f"{each.help}; --help lists all"
        if record is not None:
            yield from _list([record])
    for paragraph in (command.epilog or "").split("\n\n"):
        if paragraph.startswith("\b\n"):  # as it stands
            yield from (".PP", ".nf", _escaped(paragraph.removeprefix("\b\n")), ".fi")
        elif paragraph:
            yield from (".PP", _escaped(paragraph))


def _list(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Rows of a term and what it is."""
    for term, says in rows:
        yield from (".TP", _bold(term), _escaped(says))


def _bold(text: str) -> str:
    return f'.B "{_escaped(text).replace(chr(34), chr(92) + "(dq")}"'


def _escaped(text: str) -> str:
    """A text in which nothing is a request or an escape of roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    return re.sub(r"(?m)^(?=[.'])", r"\&", text.replace("`", "\\(ga"))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(manual(), "utf-8") if sys.argv[1:] else sys.stdout.write(manual())
