"""Completion of words in a shell: what ``i`` answers when a script that ``i completion`` prints asks for candidates.

The script puts the words of the line into ``COMP_WORDS``, which of them is typed into ``COMP_CWORD`` (in fish: the
word itself), and the name of the shell into ``_I_COMPLETE``. The answer has a line per candidate. For bash and zsh
it holds a kind, the candidate, and what it means, with tabs between them; for fish the candidate and what it means.
"""

# The paths of candidates are text: what is typed stands at their beginning as it is.
# ruff: noqa: PTH111, PTH112, PTH118, PTH208

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Literal, assert_never

from ilang.core.record import record
from ilang.icli.main import COMMANDS
from ilang.icli.options import Command, Kind, Operand, Option, is_operand, options_of
from ilang.icli.screen import Screen


@record
class Candidate:
    """A word that may stand where something is typed, and what it means."""

    text: str
    kind: Literal["plain", "file", "folder"] = "plain"
    says: str = ""


def complete(shell: str) -> int:
    """Print the candidates for the word that is typed; the status is 1 for a shell that is not known."""
    match shell:
        case "bash" | "zsh":
            words, typed = _words_of_the_line()
            lines = [f"{each.kind}\t{each.text}\t{each.says}" for each in candidates(words, typed)]
        case "fish":
            words, typed = _words_in_fish()
            name, equals, _ = typed.partition("=")
            before = name + equals if equals and name.startswith("-") else ""
            lines = [
                f"{before}{each.text}{'/' * (each.kind == 'folder')}\t{each.says}"
                for each in candidates(words, typed)
            ]
        case _:
            return 1
    screen = Screen()
    screen.write_exact("".join(line.rstrip("\t") + "\n" for line in lines))
    screen.close()
    return 0


def _words_of_the_line() -> tuple[list[str], str]:
    """The words after ``i`` and before the one that is typed, and that one, in bash and zsh.

    bash makes three words of ``--emit=c``, which are put together.
    """
    from click.shell_completion import split_arg_string

    last = int(os.environ["COMP_CWORD"])
    joined: list[str] = []
    for word in [*split_arg_string(os.environ["COMP_WORDS"]), ""][1 : last + 1]:
        before = joined[-1] if joined else ""
        if before.startswith("--") and (word == "=" or before.endswith("=")):
            joined[-1] += word
        else:
            joined.append(word)
    return joined[:-1], joined[-1] if joined else ""


def _words_in_fish() -> tuple[list[str], str]:
    """The words after ``i`` and before the one that is typed, and that one, in fish."""
    from click.shell_completion import split_arg_string

    words = split_arg_string(os.environ["COMP_WORDS"])[1:]
    typed = "".join(split_arg_string(os.environ["COMP_CWORD"])[:1])
    if typed and words and words[-1] == typed:
        words.pop()
    return words, typed


def candidates(words: Sequence[str], typed: str) -> list[Candidate]:
    """What may stand for the word that is typed after others: ``['explain', 'x~x', '--emit'], 'l'``."""
    if not words or (words[0] == "help" and len(words) == 1):
        return _commands(typed)
    if words[0] not in COMMANDS:
        return []
    command: Command = import_module(COMMANDS[words[0]][0]).COMMAND
    operands, option = _read(command, words[1:])
    if option is None and not is_operand(typed) and "--" not in words:
        name, equals, text = typed.partition("=")
        option = _known(command).get(name)
        if not equals or option is None:
            return _options(command, typed)
        typed = text
    if option is not None:
        return _values(option.names_a, option.choices, typed, operands)
    if command.most is not None and command.most <= len(operands):
        return []
    operand: Operand = command.takes[min(len(operands), len(command.takes) - 1)]
    return _values(operand.names_a, operand.choices, typed, operands)


def _known(command: Command) -> dict[str, Option]:
    """The options of a command by each of their spellings."""
    return {name: option for option in options_of(command) for name in option.names}


def _read(command: Command, words: Sequence[str]) -> tuple[list[str], Option | None]:
    """The operands among the words, and the option whose value comes next, if one does."""
    known = _known(command)
    operands: list[str] = []
    awaits: Option | None = None
    for number, word in enumerate(words):
        if awaits is not None:
            awaits = None
        elif word == "--":
            return [*operands, *words[number + 1 :]], None
        elif is_operand(word):
            operands.append(word)
        elif word in known and known[word].metavar is not None:
            awaits = known[word]
    return operands, awaits


def _commands(typed: str) -> list[Candidate]:
    """Commands; after a dash, the options of ``i`` itself."""
    rows = {name: says for name, (_, says) in COMMANDS.items()}
    rows |= {"help": "Show the page of a command"}
    if typed.startswith("-"):
        rows = {"--help": "Show the page of all commands", "--version": "Show the version"}
    return _beginning(rows.items(), typed)


def _options(command: Command, typed: str) -> list[Candidate]:
    """The options of a command, by their last spelling."""
    return _beginning(((each.names[-1], each.says) for each in options_of(command)), typed)


def _beginning(rows: Iterable[tuple[str, str]], typed: str) -> list[Candidate]:
    """Words that begin with what is typed, and what they mean."""
    return [Candidate(text, says=says) for text, says in rows if text.startswith(typed)]


def _values(
    kind: Kind, choices: Sequence[str], typed: str, operands: Sequence[str]
) -> list[Candidate]:
    """What may stand for a value of a kind."""
    match kind:
        case "word":
            return _beginning(((choice, "") for choice in choices), typed)
        case "program":
            return _paths(typed, (".i",))
        case "array":
            return _paths(typed, (".npy", ".npz"))
        case "folder":
            return _paths(typed, ())
        case "program or code":
            return [*_paths(typed, (".i",)), *_codes(typed)]
        case "definition":
            names = _definitions(operands[0]) if operands else ()
            return _beginning(((name, "") for name in names), typed)
        case _:
            assert_never(kind)


def _codes(typed: str) -> list[Candidate]:
    """Error codes, once an E is typed."""
    from ilang.icli.codes import titles

    return _beginning(titles().items(), typed.upper()) if typed[:1] in ("E", "e") else []


def _definitions(path: str) -> list[str]:
    """The definitions of a file; none if it cannot be read."""
    from ilang.codegen.runtime.files import read_module
    from ilang.core.diagnostic import Error
    from ilang.icli.programs import is_file

    try:
        return [each.name for each in read_module(path).definitions] if is_file(path) else []
    except Error:
        return []


def _paths(typed: str, endings: tuple[str, ...]) -> list[Candidate]:
    """The folders, and the files with one of the endings, whose path begins with what is typed, in order."""
    folder, begun = os.path.split(typed)
    place = os.path.expanduser(folder) or "."
    try:
        names = sorted(os.listdir(place))
    except (OSError, ValueError):
        return []
    listed: list[Candidate] = []
    for name in names:
        if not name.startswith(begun) or (name.startswith(".") and not begun):
            continue
        path = os.path.join(folder, name)
        if os.path.isdir(os.path.join(place, name)):
            listed.append(Candidate(path, "folder"))
        elif endings and name.endswith(endings):
            listed.append(Candidate(path, "file"))
    return listed
