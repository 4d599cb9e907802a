"""The definitions of a file as components."""

from __future__ import annotations

from typing import NoReturn

from ilang.codegen.runtime.component import Component
from ilang.core.diagnostic import ModuleError, nearest, visible
from ilang.core.ir.syntax import Module, Name
from ilang.core.notation.arity import wires_of_all


class Library(dict[str, Component]):
    """Components by name, in the order in which the file defines them."""

    def __missing__(self, name: str) -> NoReturn:
        """A name that the file does not define: E0401."""
        known = list(self)
        guess = nearest(str(name), known)
        raise ModuleError(
            "E0401",
            f"the file defines no {visible(str(name))}",
            help=f"did you mean {guess}?" if guess else f"it defines {', '.join(known)}",
        )


def library(module: Module) -> Library:
    """Every definition of a module, exported or not."""
    definitions = {definition.name: definition for definition in module.definitions}
    wires = wires_of_all(definitions)
    return Library(
        (d.name, Component(Name(d.name, d.span), wires[d.name], definitions, module, d.name))
        for d in module.definitions
    )
