"""Names that definitions give, in each notation: refused where one is given twice, read too early, or never read."""

from __future__ import annotations

from collections.abc import Container

from ilang.core.diagnostic import Label, ModuleError
from ilang.core.notation.reader import RESERVED, TYPES, TYPES_HELP
from ilang.core.source import Span

FIRST_READ = "an input is read at least once: leave it out, or read it"


def refuse_reserved(name: str, span: Span, words: Container[str] = RESERVED) -> None:
    """Refuse a word of the language where a name is given.

    Raises:
        ModuleError: E0404.
    """
    if name in words:
        raise reserved(name, span)


def reserved(name: str, span: Span) -> ModuleError:
    """The error for a word of the language where a name is given."""
    message = f"`{name}` is a word of the language and cannot name anything"
    help_line = f"another name will do, such as `{name.lower()}_`"
    return ModuleError("E0404", message, span, help_line)


def refuse_again(name: str, span: Span, named: dict[str, Span]) -> None:
    """Refuse a second input of one name; the first one is taken down.

    Raises:
        ModuleError: E0408.
    """
    first = named.setdefault(name, span)
    if first is not span:
        labels = (Label(span, "again here"), Label(first, "first here"))
        message = f"two inputs are named `{name}`"
        raise ModuleError("E0408", message, span, "give one of them another name", labels)


def refuse_type(name: str, span: Span) -> None:
    """Refuse a word that is no element type.

    Raises:
        ModuleError: E0412.
    """
    if name not in TYPES:
        from ilang.core.suggestion import did_you_mean

        help_line = did_you_mean(name, TYPES, TYPES_HELP, "`{}`")
        raise ModuleError("E0412", f"`{name}` is not an element type", span, help_line)


def bound_again(
    name: str, span: Span, kind: str, first: Span | None, help_line: str
) -> ModuleError:
    """The error for a name that is bound to something of another ``kind`` already."""
    labels = [Label(span, "again here"), *([Label(first, "first here")] if first else [])]
    return ModuleError("E0423", f"`{name}` names {kind} already", span, help_line, labels)


def too_early(name: str, span: Span, bound: Span, help_line: str) -> ModuleError:
    """The error for a name that is read above the statement that binds it."""
    labels = (Label(span, "read here"), Label(bound, "bound here"))
    return ModuleError("E0424", f"`{name}` is read before it is bound", span, help_line, labels)


def unread(name: str, span: Span, end: Span, is_input: bool, help_line: str) -> ModuleError:
    """The error for an input or a value that nothing reads up to the ``end``; ``help_line`` is that of a value."""
    labels = (Label(span, "named here"), Label(end, "not read up to here"))
    message = f"nothing reads the {'input' if is_input else 'value'} `{name}`"
    help_line = FIRST_READ if is_input else help_line
    return ModuleError("E0422", message, span, help_line, labels)
