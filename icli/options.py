"""Read the tokens of one command: its operands and its options.

The notation collides with option syntax (``-i~i`` negates a vector), hence a reader of our own with three rules:

    - a token that holds ``~`` is an operand, and so is a number (``-3``);
    - the value of an option is whatever token follows it;
    - ``--`` makes every token after it an operand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from ilang.core.diagnostic import CommandError
from ilang.core.record import record
from ilang.core.suggestion import did_you_mean, nearest
from ilang.icli.screen import Screen

Kind = Literal["program", "program or code", "array", "folder", "definition", "word"]
"""What a value names, for the completion of words in shells (``completion.py``); a word is one of few, or free."""

NUMBER = r"-(\d|\.\d|inf$|nan$)"


@record
class Option:
    """An option: its spellings (the last one names it), and what its value is called; None for a flag."""

    names: tuple[str, ...]
    metavar: str | None
    says: str
    choices: tuple[str, ...] = ()
    many: bool = False
    names_a: Kind = "word"


@record
class Operand:
    """What an operand of a command names, and the words it may be, if they are few."""

    names_a: Kind
    choices: tuple[str, ...] = ()


@record
class Command:
    """A command: how it is used, and the function that runs it.

    ``operands`` is their usage text; between ``least`` and ``most`` of them must be there (None: any number).
    ``takes`` says what each names; the last stands for all further ones.
    """

    name: str
    says: str
    operands: str
    least: int
    most: int | None
    options: tuple[Option, ...]
    run: Callable[[Request, Screen], int]
    takes: tuple[Operand, ...]
    more: str = ""


@record
class Request:
    """What the tokens of one command said."""

    operands: tuple[str, ...]
    values: dict[str, tuple[str, ...]]

    def has(self, name: str) -> bool:
        """Whether an option was given."""
        return name in self.values

    def one(self, name: str) -> str | None:
        """The value of an option, or None."""
        return self.values[name][-1] if name in self.values else None

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of an option that may be repeated."""
        return self.values.get(name, ())


def whole_number(request: Request, option: str, default: int, least: int = 1) -> int:
    """The whole number that an option gives.

    Raises: CommandError E0825 (it gives something else, or a number below ``least``).
    """
    text = request.one(option)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or int(text) < least:
        raise CommandError(
            "E0825", f"{option} is a whole number of {least} or more, not {text or '(empty)'}"
        )
    return int(text)


COLOR = Option(
    ("--color",), "WHEN", "When to color; auto is when the output is a terminal",
    ("auto", "always", "never"),
)  # fmt: skip
JSON = Option(("--json",), None, "Print the result, or the error, as one JSON object")
HELP = Option(("-h", "--help"), None, "Show this page")


def options_of(command: Command) -> tuple[Option, ...]:
    """The options of a command and those that every command has."""
    return (*command.options, COLOR, HELP)


def read(command: Command, tokens: Sequence[str]) -> Request:
    """Sort the tokens of a command into operands and options.

    Raises: CommandError E0802 to E0807.
    """
    known = {name: option for option in options_of(command) for name in option.names}
    operands: list[str] = []
    values: dict[str, tuple[str, ...]] = {}
    rest = list(reversed(tokens))
    while rest:
        token = rest.pop()
        if token == "--":
            operands += reversed(rest)
            break
        if is_operand(token):
            operands.append(token)
            continue
        option, attached = _option(command, known, token)
        value = _value(option, token, attached, rest)
        name = option.names[-1]
        if name in values and not option.many and option not in (COLOR, HELP):
            raise CommandError("E0807", f"{name} is given twice")
        values[name] = (*values.get(name, ()), value)
    request = Request(tuple(operands), values)
    if request.has("--help"):
        return request
    _count(command, operands)
    return request


def is_operand(token: str) -> bool:
    """Whether a token is an operand: a program, a number, a name, standard input."""
    return (
        not token.startswith("-") or token == "-" or "~" in token or bool(re.match(NUMBER, token))
    )


def _option(command: Command, known: dict[str, Option], token: str) -> tuple[Option, str | None]:
    """The option that a token names, and the value attached to it (``--shape=3``, ``-oout``)."""
    name, equals, attached = token.partition("=")
    if name in known:
        return known[name], attached if equals else None
    if not token.startswith("--") and token[:2] in known:
        return known[token[:2]], token[2:]
    guess = nearest(name, tuple(known)) or _long_name(known, name)
    hint = f"did you mean {guess}? " if guess else ""
    raise CommandError(
        "E0802",
        f"i {command.name} has no option {name}",
        help=f"{hint}`i {command.name} --help` lists them",
    )


def _long_name(known: dict[str, Option], name: str) -> str | None:
    """The long option that a token with one dash spells: ``-shape``."""
    return nearest(f"-{name}", tuple(known)) if len(name) > 2 else None


def _value(option: Option, token: str, attached: str | None, rest: list[str]) -> str:
    """The value of an option: attached, or the next token, whatever that is."""
    name = token.partition("=")[0] if attached is not None else token
    if option.metavar is None:
        if attached is not None:
            raise CommandError("E0803", f"{option.names[-1]} takes no value")
        return ""
    if attached is None:
        if not rest:
            raise CommandError("E0803", f"{name} needs a value: {name} {option.metavar}")
        attached = rest.pop()
    if option.choices and attached not in option.choices:
        listed = " or ".join((", ".join(option.choices[:-1]), option.choices[-1]))
        raise CommandError(
            "E0804",
            f"{option.names[-1]} cannot be {attached or 'empty'}",
            help=did_you_mean(attached, option.choices, f"it is {listed}"),
        )
    return attached


def _count(command: Command, operands: Sequence[str]) -> None:
    """Refuse too few or too many operands."""
    usage = f"i {command.name} {command.operands}"
    if len(operands) < command.least:
        raise CommandError("E0805", f"i {command.name} needs {command.operands}", help=usage)
    if command.most is not None and len(operands) > command.most:
        raise CommandError(
            "E0806",
            f"i {command.name} takes {_times(command.most)}, and {operands[command.most]} is one too many",
            help="quote a program that holds blanks or signs: 'ik*kj~ijk >> +ijk~ij'",
        )


def too_many(option: str, token: str) -> CommandError:
    """The error for a token after an option of ``i`` itself."""
    return CommandError("E0806", f"i {option} takes nothing more, and {token} is one too many")


def _times(count: int) -> str:
    return "one operand" if count == 1 else f"{count} operands"


def unknown_command(word: str, names: Sequence[str], before: str = "") -> CommandError:
    """The error for a token that is no command where one is expected, at the start or after ``before``."""
    begun = [name for name in names if len(word) > 1 and name.startswith(word)]
    guess = nearest(word, tuple(names)) or (begun[0] if len(begun) == 1 else None)
    if guess:
        hint = f"did you mean `i {before}{guess}`?"
    elif re.fullmatch(r"[Ee]\d{4}", word):
        hint = f"did you mean `i explain {word.upper()}`?"
    elif "~" in word:
        hint = "say what to do with the program: i explain '...', i run '...' or i check '...'"
    elif word.startswith("-") and word != "-":
        return CommandError("E0802", f"i has no option {word}", help="`i --help` lists what it has")
    else:
        hint = f"the commands are {', '.join(names)}"
    return CommandError("E0801", f"there is no command {word or '(empty)'}", help=hint)
