"""Configuration values on the command line: ``lr=0.1,momentum=0.9``, ``hids=[64,32]``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, counted
from ilang.core.ir.scalar import minus
from ilang.icli.lines import split_words

if TYPE_CHECKING:
    from ilang.core.build.program import Given

PART = re.compile(r"(?:\[[^\]]*\]|[^,\[])*")


def configuration(texts: Sequence[str]) -> dict[str, Given]:
    """Values by name, of one option or of several.

    Raises: CommandError E0825.
    """
    values: dict[str, Given] = {}
    for text in texts:
        at = 0
        while at <= len(text):
            match = PART.match(text, at)
            part = match[0] if match else ""
            name, equals, value = part.partition("=")
            known = _value(value.strip())
            if not equals or not name.strip().isidentifier() or known is None:
                raise _refused(text if text[at + len(part) :].startswith("[") else part)
            if name.strip() in values:
                message = f"the configuration value {name.strip()} is given twice"
                raise CommandError("E0825", message, help="give it once: --config lr=0.1")
            values[name.strip()] = known
            at += len(part) + 1
    return values


def configured(name: str, text: str, known: Sequence[str]) -> dict[str, Given]:
    """The values after the ``;`` of a call, by name or in the order in which a definition has them.

    Raises: CommandError E0825.
    """
    values: dict[str, Given] = {}
    for number, part in enumerate(split_words(text, ",")):
        written, equals, value = part.rpartition("=")
        setting = written.strip() if equals else next(iter(known[number:]), "")
        given = _value(re.sub(r"\s", "", value))
        if not setting:
            message = f"{name} has {counted(len(known), 'configuration value')}, and {part} is another one"
            raise CommandError("E0825", message, help=f"they are {', '.join(known) or 'none'}")
        if given is None:
            message = f"`{part}` is no configuration value"
            help_line = f"a number or a list of numbers: `{setting}=2`, `{setting}=[64,32]`"
            raise CommandError("E0825", message, help=help_line)
        if setting in values:
            message = f"the configuration value {setting} is given twice"
            raise CommandError("E0825", message, help=f"give it once: `{setting}={value.strip()}`")
        values[setting] = given
    return values


def _value(text: str) -> Given | None:
    """A number or a list of numbers; None for another text."""
    if text.startswith("[") and text.endswith("]"):
        numbers = [_number(each.strip()) for each in text[1:-1].split(",") if text[1:-1].strip()]
        return None if None in numbers else [each for each in numbers if each is not None]
    return _number(text)


def _number(text: str) -> int | float | None:
    try:
        digits = text.removeprefix("-")
        if not digits.isdecimal():
            return float(text)
        return minus(int(digits)) if digits != text else int(text)
    except ValueError:
        return None


def _refused(part: str) -> CommandError:
    message = f"{part or '(empty)'} is no configuration value"
    return CommandError(
        "E0825", message, help="a number or a list of numbers: --config lr=0.1,hids=[64,32]"
    )
