"""Meanings of words in a body over names: the definitions of the file, and the values of the definition.

A value is an input or a name that a statement binds. Each value has one place where it is named, and can be read below
it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import chain

from ilang.core.diagnostic import Label, ModuleError
from ilang.core.ir.syntax import DISCARD, Name, Value
from ilang.core.notation.naming import bound_again, refuse_reserved, too_early, unread
from ilang.core.source import Span
from ilang.core.suggestion import Guesses

NAME_HELP = "a value has a name of its own"
ABOVE_HELP = "a statement reads inputs, and the values of the statements above it"
UNREAD_HELP = "leave the statement out; `_` stands for an output that is not needed"

Spelled = Callable[[str], str | None]
"""The name of the value that an argument spells in another way, such as an array; None where it spells none."""


class BodyNames:
    """The names of one body, and which of them something reads."""

    def __init__(
        self,
        definitions: Collection[str],
        inputs: Mapping[str, Span],
        spelled: Spelled = lambda _: None,
    ) -> None:
        """Start with the inputs; ``spelled`` knows arguments that are no names."""
        self.definitions = definitions
        self.inputs = inputs
        self.values = dict(inputs)
        self.spelled = spelled
        self.ready: dict[str, int] = {}
        self.used: set[str] = set()
        self.guesses = Guesses()
        self.complete = True
        """Whether all of the body could be read, so that what nothing reads can be told."""

    def bind(self, name: str, span: Span, ready: int) -> None:
        """Add a value, which can be read from position ``ready`` of the text on.

        Raises:
            ModuleError: E0404, E0423.
        """
        refuse_reserved(name, span)
        self.refuse_definition(name, span)
        if name in self.values:
            kind = "an input" if name in self.inputs else "a value"
            raise bound_again(name, span, kind, self.values[name], NAME_HELP)
        self.values[name] = span
        self.ready[name] = ready

    def refuse_definition(self, name: str, span: Span) -> None:
        """Refuse a value that has the name of a definition; one of a library knows nothing of a file's.

        Raises:
            ModuleError: E0423.
        """
        if name in self.definitions:
            places = self.definitions if isinstance(self.definitions, Mapping) else {}
            first = places.get(name)
            if first is None or first.source.name == span.source.name:
                raise bound_again(name, span, "a definition", first, NAME_HELP)

    def read(self, name: str, span: Span) -> Value | Name:
        """The meaning of a word among arguments.

        Raises:
            ModuleError: E0401, E0424.
        """
        self.used.add(name)
        if name in self.values:
            if span.start < self.ready.get(name, 0):
                raise too_early(name, span, self.values[name], ABOVE_HELP)
            return Value(name, span)
        if name in self.definitions:
            return Name(name, span)
        message = f"there is no input, value or definition named `{name}`"
        known = chain(self.values, self.definitions)
        help_line = self.guesses.did_you_mean(name, known, self._nameable(name))
        raise ModuleError("E0401", message, span, help_line)

    def _nameable(self, name: str) -> str:
        if name == DISCARD:
            return "`_` binds nothing: give the output a name where it is bound"
        return f"an input is named in the parentheses before `=`: `f({', '.join((*self.inputs, name))}) =`"

    def unused(self, end: Span) -> list[ModuleError]:
        """The errors for inputs and values that nothing reads; ``end`` is where the body ends."""
        return [
            unread(name, span, end, name in self.inputs, UNREAD_HELP)
            for name, span in self.values.items()
            if name not in self.used
        ]

    def component(self, name: str, span: Span) -> ModuleError:
        """The error for a word before parentheses that is no definition."""
        if name in self.values:
            message = f"`{name}` is a value, and a component belongs before `(`"
            labels = (Label(span, "applied here"), Label(self.values[name], "named here"))
            return ModuleError("E0425", message, span, "components are definitions", labels)
        unwritten = (
            f"define it in a line of the file, `{name} = +ij~i`, or write it here: `(+ij~i)(x)`"
        )
        from ilang.core.notation.files.libraries import piece_help
        from ilang.core.notation.guidance import named

        help_line = piece_help(name, in_file=True) or named(name) or unwritten
        help_line = self.guesses.did_you_mean(name, self.definitions, help_line)
        message = f"there is no definition named `{name}`"
        return ModuleError("E0401", message, span, help_line)
