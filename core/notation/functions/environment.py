"""Names inside a tensor function or a routine: what each stands for, and whether something reads it.

A name is bound by the head, by ``name =``, by a string, which holds in the whole definition, or by ``for`` and
``repeat``, for their blocks. The branches of an ``if`` bind what they bind together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ilang.core.diagnostic import Error, Label, ModuleError
from ilang.core.ir.functions import Head
from ilang.core.ir.primitives import PRIMITIVES
from ilang.core.notation.components.arity import Wires
from ilang.core.notation.functions.elsewhere import instead
from ilang.core.notation.functions.tokens import NO_NAMES
from ilang.core.notation.naming import bound_again, reserved, too_early, unread
from ilang.core.source import Span
from ilang.core.suggestion import Guesses, nearest

NAME_HELP = "each tensor and each configuration value has a name of its own"
ABOVE_HELP = "a statement reads inputs, strings, and what the statements above it bind"
UNREAD_HELP = "leave it out; a shape alone is constrained by `_ = ...`"

Kind = Literal["input", "configuration", "value", "instance", "declared", "slot", "number"]
KINDS = {
    "input": "an input",
    "configuration": "a configuration value",
    "value": "a value",
    "instance": "an instance of a tensor function",
    "declared": "a tensor that a string declares",
    "slot": "a slot of the operation",
    "number": "a number",
}


class NameEntry:
    """The meaning of a name, its place, and whether something reads it; ``head`` is that of an instance."""

    def __init__(self, name: str, kind: Kind, span: Span, head: Head | None = None) -> None:
        self.name = name
        self.kind: Kind = kind
        self.span = span
        self.head = head
        self.used = False


Environment = dict[str, tuple[NameEntry, ...]]
"""The names that are bound at a place; several entries where branches of an ``if`` bind the same name."""


class File:
    """The definitions of a file by name: where each stands, heads of tensor functions and routines, wires of others.

    ``taken`` are the names that nothing else may have: those of definitions of the same text, not of libraries.
    """

    def __init__(
        self,
        names: Mapping[str, Span],
        taken: Mapping[str, Span],
        functions: Mapping[str, Head],
        routines: Mapping[str, Head],
        wires: Mapping[str, Wires],
    ) -> None:
        self.names = names
        self.taken = taken
        self.functions = functions
        self.routines = routines
        self.wires = wires
        self.guesses = Guesses()


class DefinitionNames:
    """The names of one definition. Errors in their use go to ``refused``."""

    def __init__(self, file: File, refused: list[Error]) -> None:
        self.file = file
        self.refused = refused
        self.entries: list[NameEntry] = []
        self.later: dict[str, Span] = {}
        """Every name that a statement binds, wherever it stands, and the first place of each."""

    def bind(self, environment: Environment, entry: NameEntry) -> None:
        """Add a name to those of a place; a name that may not be bound is added all the same."""
        name, span = entry.name, entry.span
        known = environment.get(name)
        if name in NO_NAMES:
            self.refused.append(reserved(name, span))
        elif known is not None:
            help_line = NAME_HELP
            if known[0].kind in ("input", "value", "declared"):
                help_line += f"; in a routine `{name} =: ...` sets it, `{name} =- ...` subtracts"
            again = bound_again(name, span, KINDS[known[0].kind], known[0].span, help_line)
            self.refused.append(again)
        elif name in self.file.taken and self.file.taken[name].source.name == span.source.name:
            again = bound_again(name, span, "a definition", self.file.taken[name], NAME_HELP)
            self.refused.append(again)
        for each in known or ():  # one mistake is told once
            each.used = entry.used = True
        environment[name] = (entry,)
        self.entries.append(entry)

    def read(self, environment: Environment, name: str) -> NameEntry | None:
        """The entry of a name, marked as read; None where it is unknown, or stands for a definition."""
        entries = environment.get(name, ())
        for entry in entries:
            entry.used = True
        return entries[0] if entries else None

    def unknown(self, environment: Environment, name: str, span: Span) -> None:
        """Note an unknown name."""
        if name in self.later:
            self.refused.append(too_early(name, span, self.later[name], ABOVE_HELP))
            return
        help_line = f'an input stands in the head, and a string declares a tensor: `"{name}"`'
        if name in _SLOTS:
            help_line = f"`{name}` is a slot of an operation with its own gradient: `prim`"
        help_line = self.file.guesses.did_you_mean(
            name, [*environment, *self.file.names], help_line
        )
        message = f"there is no tensor, configuration value or definition named `{name}`"
        self.refused.append(ModuleError("E0401", message, span, help_line))

    def unknown_function(self, environment: Environment, name: str, span: Span) -> None:
        """Note an unknown name before arguments."""
        entry = self.read(environment, name)
        if entry is not None:
            message = f"`{name}` is {KINDS[entry.kind]}, and a function belongs before `(`"
            labels = (Label(span, "called here"), Label(entry.span, "named here"))
            help_line = "functions are definitions, primitives, and instances: `l = layer(; 64)`"
            self.refused.append(ModuleError("E0425", message, span, help_line, labels))
            return
        if name in self.later:
            self.unknown(environment, name, span)
            return
        known = [*(each for each in PRIMITIVES if each != "square"), *self.file.names]
        unwritten = f"define it in a line of the file: `op {name}(x) = x + 1`; `i explain nn` lists what `use nn` has"
        usual = instead(name) or _in_library(name)
        if usual is not None and usual.endswith(f"has `{name}`"):
            known = []  # a name of a library is no misspelled other one
        guess = self.file.guesses.did_you_mean(name, known, usual or unwritten)
        message = f"there is no definition or primitive named `{name}`"
        self.refused.append(ModuleError("E0401", message, span, guess))

    def unused(self, end: Span) -> None:
        """Note the inputs and values that nothing reads; ``end`` is where the definition ends."""
        for entry in self.entries:
            if not entry.used and entry.kind in ("input", "value", "instance"):
                is_input = entry.kind == "input"
                self.refused.append(unread(entry.name, entry.span, end, is_input, UNREAD_HELP))


def _in_library(name: str) -> str | None:
    """The library where a definition of this name, or one much like it, is to be had."""
    from ilang.core.library import INNER
    from ilang.core.notation.files.libraries import defined_in

    known = {each: library for each, library in defined_in().items() if each not in INNER}
    close = name if name in known else nearest(name, list(known))
    if close is None:
        return None
    return (
        f"`use {known[close]}` has `{close}`"
        if close == name
        else f"did you mean `{close}`, of `{known[close]}`?"
    )


_SLOTS = frozenset(
    [f"{part}{n}" for part in ("v", "t", "g") for n in ("", 1, 2, 3)]
    + ["lhs", "rhs1", "rhs2", "rhs3"]
)
