"""Definitions of the REPL that use names which nothing has yet: they wait, and are completed when the names come.

softmax(x[m,n]) = shift >> norm      softmax  waits for shift, norm
norm = (I & +ij~i) >> ij/i~ij        norm(in0[i,j]) -> [i,j]
shift = (I & >ij~i) >> ij-i~ij       shift(in0[i,j]) -> [i,j]
                                     softmax(x[m,n]) -> [m,n]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ilang.core.diagnostic import Error, ModuleError
from ilang.core.record import record
from ilang.icli.calls import defined_name
from ilang.icli.filled import MAKERS
from ilang.icli.lines import BINDS, CALLS, DEFINES, split_words
from ilang.icli.replies import Reply

if TYPE_CHECKING:
    from ilang.icli.session import ReplSession

UNKNOWN = ("E0401", "E0820", "E0130")
"""Errors on names that nothing has."""
HINTS = ("did you mean ", "`use ")
"""Beginnings of help lines that name what an unknown name may mean."""


@record
class WaitingDefinition:
    """A definition as it was typed, the names that it waits for, and the error that it gives without them."""

    text: str
    names: tuple[str, ...]
    error: Error

    def says(self, name: str) -> str:
        """The line that says what the definition, which has a name, waits for."""
        hint = self.error.help or ""
        guess = f"   {hint}" if hint.startswith(HINTS) else ""
        return f"{name}  waits for {', '.join(self.names)}{guess}"


def waits(session: ReplSession, line: str, code: str, error: Error) -> Reply | None:
    """The reply to a definition that lacks only names that may come later; None to another line.

    Raises: ModuleError E0401 (the line uses a definition that waits).
    """
    head = DEFINES.match(code) or BINDS.match(code)
    name = defined_name(code) or (head.group(1) if head is not None else None)
    if name is not None and name.isidentifier() and not is_applied(session, code):
        waiting = waiting_definition(session, name, line, error)
        if waiting is not None:
            session.waiting[name] = waiting
            return Reply((waiting.says(name),))
    unready = uses_waiting(session, error)
    if unready is not None:
        raise unready from None
    return None


def is_applied(session: ReplSession, code: str) -> bool:
    """Whether a line binds a name to what a program gives for arrays."""
    binds = BINDS.match(code)
    if binds is None:
        return False
    value = binds.group(2)
    return CALLS.fullmatch(value) is not None or any(map(session.is_array, split_words(value)))


def waiting_definition(
    session: ReplSession, name: str, text: str, error: Error
) -> WaitingDefinition | None:
    """A definition that gave an error, if only names that may come later are missing."""
    names: dict[str, None] = {}
    refused: Error | None = error
    while refused is not None:
        errors = (refused, *refused.others)
        unknown = [word for each in errors if (word := _unknown(session, each)) is not None]
        if not names and len(unknown) != len(errors):
            return None
        if any(each.code == "E0426" for each in errors):
            return None  # a value is missing, and no definition is one
        new = dict.fromkeys(word for word in unknown if word not in names and word != name)
        if not new:
            break
        names |= new
        stubs = {each: f"{each} = I" for each in names}
        refused = _refusal(session, {name: text, **stubs})
    return WaitingDefinition(text, tuple(names), error) if names else None


def _unknown(session: ReplSession, error: Error) -> str | None:
    """The name that an error says is unknown; None for another error."""
    word = "" if error.span is None else error.span.text()
    is_unknown = error.code == "E0401" and word.isidentifier() and word not in session.names()
    is_unknown = is_unknown and word not in MAKERS
    return word if is_unknown else None


def _refusal(session: ReplSession, texts: Mapping[str, str]) -> Error | None:
    """The error that definitions give beside those at hand, if they do."""
    try:
        session.with_texts(dict(texts))
    except Error as error:
        return error
    return None


def settle(session: ReplSession) -> tuple[tuple[object, ...], bool]:
    """Complete the definitions whose names have come: the lines on them, and whether one was refused."""
    parts: list[object] = []
    failed = False
    while ready := _ready(session):
        texts = {name: session.waiting.pop(name).text for name in ready}
        try:
            parts += session.define(texts).parts
        except Error as error:
            parts.append(error)
            failed = True
    return tuple(parts), failed


def _ready(session: ReplSession) -> list[str]:
    """A definition whose names are all known, or else those that wait for nothing but each other."""
    from ilang.core.notation.files.libraries import defined_in

    waiting = session.waiting
    named = {name for name, library in defined_in().items() if library in session.calls.libraries}
    known = session.names() | named
    for name, each in waiting.items():
        if known.issuperset(each.names):
            return [name]
    group = set(waiting)
    while others := {name for name in group if not (known | group).issuperset(waiting[name].names)}:
        group -= others
    return [name for name in waiting if name in group]


def unfinished(session: ReplSession) -> Reply:
    """The errors of definitions that still wait, once no line follows."""
    return Reply(tuple(each.error for each in session.waiting.values()), bool(session.waiting))


def uses_waiting(session: ReplSession, error: Error) -> ModuleError | None:
    """The error for a line that uses a definition which waits, in place of the one that it is unknown."""
    word = error.span.text() if error.span is not None and error.code in UNKNOWN else ""
    if word not in session.waiting:
        return None
    names = ", ".join(session.waiting[word].names)
    help_line = f"define {names}, or `:drop {word}`"
    return ModuleError("E0401", f"`{word}` waits for {names}", error.span, help_line)
