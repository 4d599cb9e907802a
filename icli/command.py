"""Commands of the command line: click's, with our rules for tokens and our messages.

The notation collides with option syntax (``-i~i`` negates a vector), hence three rules, which ``Command.parse_args``
puts in front of click's parser:

    - a token that holds ``~`` is an operand, and so is a number (``-3``);
    - the value of an option is whatever token follows it;
    - ``--`` makes every token after it an operand.

An option or an operand is declared once, for the reader, for the help page and for what shells complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import click

from ilang.core.diagnostic import CommandError
from ilang.core.record import record
from ilang.icli.screen import Screen

Kind = Literal["program", "program or code", "array", "folder", "definition", "word"]
"""The kind of thing that a value names, for the completion of words in shells (``completion.py``); a word is free."""
Takes = Kind | tuple[str, ...]
"""The values that are taken: something of a kind, or one of a few words."""

OPTION = "-(?!inf$|nan$)[-A-Za-z]"
MARK = "\0"
"""A character that no token of a command line can hold: click takes a token that begins with it for no option."""
PLAIN = "ilang.plain"
"""The name of what a context knows of ``--``."""
WIDTH = 80
"""Columns of help pages, at every width of the terminal."""


def _offered(context: click.Context, parameter: click.Parameter, typed: str) -> list[Any]:
    """Completions that a shell may put in the place of what is typed of a value."""
    from ilang.icli.completion import values

    assert isinstance(parameter, Option | CommandOperand)
    program = context.params.get("program")
    first = program[0] if isinstance(program, tuple) and program else program or None
    return values(parameter.takes, typed, first)


class Option(click.Option):
    """An option: its spellings (the last one names it), and what its value is called; None for a flag."""

    def __init__(
        self, names: str, metavar: str | None, says: str, takes: Takes = "word", **attributes: Any
    ) -> None:
        """``attributes`` are click's; with ``many`` the option may be repeated."""
        self.takes = takes
        self.many = attributes.pop("many", False)
        is_flag = metavar is None
        if not is_flag:
            attributes |= {"multiple": True, "type": click.UNPROCESSED, "shell_complete": _offered}
        super().__init__(names.split(), metavar=metavar, count=is_flag, **attributes)
        self.help = says  # click passes a help that it is given through `inspect`, which takes long to import

    @classmethod
    def of_definition(cls, says: str, many: bool = False) -> Option:
        """The option that names the definition that a command works on."""
        return cls("--def", "NAME", says, "definition", many=many)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The values of the option, as written, or how often it is there, if it is a flag.

        Raises: CommandError E0804, E0807.
        """
        if self.count:
            times = value or 0
        else:
            value = tuple(_unmarked(each) for each in value or ())
            times = len(value)
            for each in value:
                if isinstance(self.takes, tuple) and each not in self.takes:
                    from ilang.icli.refusals import no_choice

                    raise no_choice(self.opts[-1], each, self.takes)
        if 1 < times and not self.many:
            raise CommandError("E0807", f"{self.opts[-1]} is given twice", help="give it once")
        return value

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The row on the help page: the words that the option takes, where it takes few, stand behind its kind."""
        row = super().get_help_record(ctx)
        if row is None or not isinstance(self.takes, tuple):
            return row
        return row[0], f"{row[1]}: {', '.join(self.takes)}"


class CommandOperand(click.Argument):
    """An operand: its name, how usage shows it, and what it is."""

    def __init__(self, name: str, metavar: str, takes: Takes, **attributes: Any) -> None:
        """``attributes`` are click's: ``required``, and ``nargs``, which is -1 for any number."""
        self.takes = takes
        attributes |= {"type": click.UNPROCESSED, "shell_complete": _offered}
        super().__init__([name], metavar=metavar, **attributes)

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The operand, or the tuple of them, as written."""
        if isinstance(value, str):
            return _unmarked(value)
        return value and tuple(_unmarked(each) for each in value)


@record
class Request:
    """The options and operands of one command, as its tokens say them; ``plain`` where ``--`` is one of these."""

    operands: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    plain: bool = False

    def has(self, name: str) -> bool:
        """Whether an option was given."""
        return name in self.values

    def one(self, name: str) -> str | None:
        """The value of an option, or None."""
        return self.values[name][-1] if name in self.values else None

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of an option that may be repeated."""
        return self.values.get(name, ())


def whole_number(
    request: Request, option: str, default: int, least: int = 1, most: int = 2**63 - 1
) -> int:
    """The whole number that an option gives.

    Raises: CommandError E0825 (it gives something else, or a number below ``least`` or above ``most``).
    """
    text = request.one(option)
    if text is None:
        return default
    help_line = f"write a number: {option} {max(default, least)}"
    digits = text.lstrip("0") or text[:1]
    if not text.isascii() or not text.isdecimal() or (len(digits) < 20 and int(digits) < least):
        message = f"{option} is a whole number of {least} or more, not {text or '(empty)'}"
        raise CommandError("E0825", message, help=help_line)
    if len(str(most)) < len(digits) or most < int(digits):
        message = f"{option} is at most {most}, not {digits}"
        raise CommandError("E0825", message, help=help_line)
    return int(digits)


def seed_of(request: Request) -> int:
    """The seed that ``--seed`` gives; 0 without it. Raises: CommandError E0825."""
    return whole_number(request, "--seed", 0, least=0, most=2**64 - 1)


def threads_of(request: Request) -> int | str:
    """The cores that ``--threads`` gives, else all where the work is enough. Raises: CommandError E0825."""
    return whole_number(request, "--threads", 1) if request.has("--threads") else "auto"


def target_of(request: Request) -> str:
    """The target that runs a program. Raises: CommandError E0822."""
    target = request.one("--target") or "c"
    if not request.has("--emulate"):
        return target
    if target != "cuda":
        message = f"--emulate is for CUDA, not for {target}"
        raise CommandError("E0822", message, help="--target cuda --emulate")
    return "cuda-emulated"


def _show_page(context: click.Context, _: click.Parameter, times: int) -> None:
    """Print the help page and end the command, where it is asked for."""
    if times and not context.resilient_parsing:
        context.obj.write(context.get_help() + "\n")
        context.exit()


WHEN = ("auto", "always", "never")
COLOR = Option(
    "--color", "WHEN", "When to color; auto is when the output is a terminal", WHEN, many=True
)
JSON = Option("--json", None, "Print the result, or the error, as one JSON object")
CONFIG = Option(
    "--config", "NAME=NUMBER", "Set a value after the `;` of an `op` or `cd`: lr=0.1", many=True
)
SHAPE = Option(
    "--shape",
    "SHAPES",
    "Shapes of the inputs, in order, 32x64,64x16, or by name, x=32x64; `.` is a scalar; of an `op` or `cd`"
    " batch|features: x=64|784; repeat for several",
    many=True,
)
THREADS = Option(
    "--threads",
    "N",
    "How many cores to use; default: all where there is work enough. Results never depend on it",
)
TARGETS = ("c", "numpy", "cuda")
TARGET = Option("--target", "TARGET", "Where to run; numpy is the slow reference", TARGETS)
EMULATE = Option("--emulate", None, "With --target cuda: emulate the GPU on the CPU, slowly")
HELP = Option(
    "-h --help", None, "Show this page", many=True, is_eager=True, expose_value=False, callback=_show_page
)  # fmt: skip


class Command(click.Command):
    """A command: the function that runs it, what it takes, and what its page says."""

    def __init__(
        self,
        name: str,
        says: str,
        run: Callable[[Request, Screen], int],
        operands: tuple[CommandOperand, ...],
        options: tuple[Option, ...],
        more: str | None = None,
    ) -> None:
        """``more`` ends the page."""
        self.run = run
        super().__init__(
            name,
            params=[*operands, *options, COLOR, HELP],
            help=says,
            epilog=more,
            add_help_option=False,
            context_settings={"allow_extra_args": True, "terminal_width": WIDTH},
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the tokens of the command into ``ctx.params``.

        Raises: CommandError E0802 to E0807.
        """
        if ctx.resilient_parsing and args and self._awaits_value(args[-1]):
            args = args[:-1]  # what is to be completed is its value
        ctx.meta[PLAIN] = "--" in args
        rest = [_marked(token) for token in args]
        try:
            super().parse_args(ctx, rest)
        except click.MissingParameter:
            from ilang.icli.refusals import too_few

            raise too_few(self.name or "", self._operands()) from None
        except (click.NoSuchOption, click.BadOptionUsage):
            # The parser takes tokens off the list as it reads them: the last one that is gone is the one it refuses.
            raise self._misread(args[len(args) - len(rest) - 1]) from None
        if ctx.args and not ctx.resilient_parsing:
            from ilang.icli.refusals import too_many_operands

            self._check_values(ctx)
            most = sum(isinstance(each, CommandOperand) for each in self.params)
            raise too_many_operands(self.name or "", most, [*map(_unmarked, ctx.args)])
        return ctx.args

    def invoke(self, ctx: click.Context) -> int:
        """Run the command; its status."""
        operands: list[str] = []
        values: dict[str, tuple[str, ...]] = {}
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            if isinstance(parameter, CommandOperand):
                operands += [value] if isinstance(value, str) else value or ()
            elif value:
                values[parameter.opts[-1]] = value if isinstance(value, tuple) else ("",)
        return self.run(Request(tuple(operands), values, ctx.meta[PLAIN]), ctx.obj)

    def _check_values(self, ctx: click.Context) -> None:
        """Refuse an option whose value is the next option, where that leaves an operand too many.

        Raises: CommandError E0803.
        """
        known = self._known()
        for option in {*known.values()}:
            value = ctx.params.get(option.name or "")
            for each in value if isinstance(value, tuple) and not option.count else ():
                if each in known:
                    name = option.opts[-1]
                    message = f"{name} needs a value, and {each} follows it"
                    written = f"{name} {option.metavar} {each} {_unmarked(ctx.args[0])}"
                    raise CommandError("E0803", message, help=written)

    def _known(self) -> dict[str, Option]:
        """The options by each of their spellings."""
        return {
            name: each for each in self.params if isinstance(each, Option) for name in each.opts
        }

    def _awaits_value(self, token: str) -> bool:
        option = self._known().get(token)
        return option is not None and not option.count

    def _operands(self) -> str:
        return " ".join(
            each.metavar or "" for each in self.params if isinstance(each, CommandOperand)
        )

    def _misread(self, token: str) -> CommandError:
        """The error of a token that click refuses: no option, no value, or a value of a flag."""
        known = self._known()
        name = token.partition("=")[0]
        option = known.get(name) or (None if token.startswith("--") else known.get(token[:2]))
        if option is None:
            from ilang.icli.refusals import unknown_option

            return unknown_option(self.name or "", name, tuple(known))
        if option.count:
            message = f"{option.opts[-1]} takes no value"
            return CommandError("E0803", message, help=f"write {option.opts[-1]} alone")
        message = f"{name} needs a value: {name} {option.metavar}"
        return CommandError("E0803", message, help=f"`i {self.name} --help` says what it may be")


def is_operand(token: str) -> bool:
    """Whether a token is an operand: a program, a number, a name, a sign such as ``->``, standard input."""
    return "~" in token or re.match(OPTION, token) is None


def _marked(token: str) -> str:
    """A token as click is to read it: operands marked, and the value that ``-o=out`` attaches."""
    return MARK + token if is_operand(token) else re.sub("^(-[^-])=", rf"\1{MARK}", token)


def _unmarked(token: str) -> str:
    """A marked token as it was written."""
    return token.removeprefix(MARK).replace(MARK, "=")
