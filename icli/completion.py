"""Completion of words in a shell: what ``i`` answers when a script that ``i completion`` prints asks for candidates.

The script puts the words of the line into ``COMP_WORDS``, which of them is typed into ``COMP_CWORD`` (in fish: the
word itself), and the name of the shell into ``_I_COMPLETE``. The answer has a line per candidate. For bash and zsh
it holds a kind, the candidate, and what it means, with tabs between them; for fish the candidate and what it means.
"""

# The paths of candidates are text: what is typed stands at their beginning as it is.
# ruff: noqa: PTH111, PTH112, PTH118, PTH208

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, assert_never

from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from ilang.icli.commands import COMMANDS
from ilang.icli.files import ARRAY_FILES
from ilang.icli.group import GROUP
from ilang.icli.screen import Screen

if TYPE_CHECKING:
    from ilang.icli.command import Takes


class _Completion(ShellComplete):
    """The completions in bash and zsh; ``i help`` is followed by a command, and what is none by nothing."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words after ``i`` and before the one that is typed, and that one.

        bash makes three words of ``--emit=c``, which are put together.
        """
        last = int(os.environ["COMP_CWORD"])
        joined: list[str] = []
        for word in [*split_arg_string(os.environ["COMP_WORDS"]), ""][1 : last + 1]:
            before = joined[-1] if joined else ""
            if before.startswith("--") and (word == "=" or before.endswith("=")):
                joined[-1] += word
            else:
                joined.append(word)
        return joined[:-1], joined[-1] if joined else ""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The completions of the word that is typed after others: ``['explain', 'x~x', '--emit'], 'l'``."""
        args = args[1:] if args[:1] == ["help"] and len(args) == 1 else args
        if args and args[0] not in COMMANDS:
            return []
        return super().get_completions(args, incomplete)

    def format_completion(self, item: CompletionItem) -> str:
        """A kind, the candidate, and what it means."""
        return f"{item.type}\t{item.value}\t{item.help or ''}".rstrip("\t")


class _FishCompletion(_Completion):
    """The completions in fish, where a candidate stands for all of ``--emit=c``."""

    before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words after ``i`` and before the one that is typed, and that one."""
        words = split_arg_string(os.environ["COMP_WORDS"])[1:]
        typed = "".join(split_arg_string(os.environ["COMP_CWORD"])[:1])
        if typed and words and words[-1] == typed:
            words.pop()
        name, equals, _ = typed.partition("=")
        self.before = name + equals if equals and name.startswith("-") else ""
        return words, typed

    def format_completion(self, item: CompletionItem) -> str:
        """The candidate and what it means."""
        path = f"{self.before}{item.value}{'/' * (item.type == 'folder')}"
        return f"{path}\t{item.help or ''}".rstrip("\t")


SHELLS = {"bash": _Completion, "zsh": _Completion, "fish": _FishCompletion}


def complete(shell: str) -> int:
    """Print the candidates for the word that is typed; the status is 1 for a shell that is not known."""
    if shell not in SHELLS:
        return 1
    lines = SHELLS[shell](GROUP, {}, "i", "_I_COMPLETE").complete()
    screen = Screen()
    screen.write_exact(lines and lines + "\n")
    screen.close()
    return 0


def _beginning(rows: Iterable[tuple[str, str]], typed: str) -> list[CompletionItem]:
    """Words that begin with what is typed, and what they mean."""
    return [CompletionItem(text, help=says) for text, says in rows if text.startswith(typed)]


def values(takes: Takes, typed: str, program: str | None) -> list[CompletionItem]:
    """The completions of a value that is typed, of a command on a program."""
    match takes:
        case tuple():
            return _beginning(((choice, "") for choice in takes), typed)
        case "word":
            return []
        case "program":
            return _paths(typed, (".i",))
        case "array":
            return _paths(typed, ARRAY_FILES)
        case "folder":
            return _paths(typed, ())
        case "program or code":
            return [*_paths(typed, (".i",)), *_codes(typed)]
        case "definition":
            names = _definitions(program) if program else ()
            return _beginning(((name, "") for name in names), typed)
        case _:
            assert_never(takes)


def _codes(typed: str) -> list[CompletionItem]:
    """Error codes, once an E is typed."""
    from ilang.icli.codes import titles

    return _beginning(titles().items(), typed.upper()) if typed[:1] in ("E", "e") else []


def _definitions(path: str) -> list[str]:
    """The definitions of a file; none if it cannot be read."""
    from ilang.codegen.system.files import read_module
    from ilang.core.diagnostic import Error
    from ilang.icli.programs import is_file

    try:
        return [each.name for each in read_module(path).definitions] if is_file(path) else []
    except Error:
        return []


def _paths(typed: str, endings: tuple[str, ...]) -> list[CompletionItem]:
    """The folders, and the files with one of the endings, whose path begins with what is typed, in order."""
    folder, begun = os.path.split(typed)
    place = os.path.expanduser(folder) or "."
    try:
        names = sorted(os.listdir(place))
    except (OSError, ValueError):
        return []
    listed: list[CompletionItem] = []
    for name in names:
        if not name.startswith(begun) or (name.startswith(".") and not begun):
            continue
        path = os.path.join(folder, name)
        if os.path.isdir(os.path.join(place, name)):
            listed.append(CompletionItem(path, "folder"))
        elif endings and name.endswith(endings):
            listed.append(CompletionItem(path, "file"))
    return listed
