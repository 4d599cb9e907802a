"""The names that the definitions of a file have in C: with that of the file before them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ilang.codegen.targets.identifiers import function_identifier, identifier, member_identifier
from ilang.codegen.targets.session import ExportedFunction
from ilang.core.diagnostic import CommandError
from ilang.core.ir.shaped import Shaped
from ilang.core.machine import Machine
from ilang.core.pipeline import lower
from ilang.core.record import replace

LONGEST_STEM = 64
NO_PREFIX = "none"
"""The word for names without a prefix."""


def c_name(text: str) -> str:
    """The name of a file as a C identifier that starts with a letter."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)[:LONGEST_STEM]
    if not name.strip("_"):
        return "model"
    return name if name[0].isalpha() else f"model_{name.lstrip('_')}"


def prefix_of(given: str | None, stem: str) -> str:
    """The beginning of all names: what is ``given``, nothing for ``none``, else the name of the file.

    Raises:
        CommandError: E0828 (no C identifier).
    """
    if given is None:
        return c_name(stem)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", given):
        message = f"--prefix {given or '(empty)'} is no beginning of a name in C"
        raise CommandError("E0828", message, help=f"--prefix {c_name(given)}, or --prefix none")
    return "" if given == NO_PREFIX else given


def exported_name(name: str, prefix: str) -> str:
    """The name of a definition with a prefix, but for one that has the name of the prefix: ``digits`` of digits.i."""
    return name if prefix in ("", name) else f"{prefix}_{name}"


def exported_function(shaped: Shaped, machine: Machine, prefix: str) -> ExportedFunction:
    """A program for a machine as a function, its name after a prefix."""
    shaped = replace(shaped, name=exported_name(shaped.name, prefix))
    return ExportedFunction(shaped, lower(shaped, machine))


def renamed(functions: Sequence[ExportedFunction]) -> Iterator[tuple[str, str]]:
    """The names of functions, arrays and extents, each with that in C, where it is another."""
    for function in functions:
        program = function.program
        buffers = [program.buffers[n].name for n in (*program.inputs, *program.outputs)]
        sizes = [size.name for size in program.sizes if size.is_argument()]
        yield from renamed_words({program.name: function_identifier(program.name)})
        yield from renamed_words({name: identifier(name) for name in buffers})
        yield from renamed_words({name: member_identifier(name) for name in sizes})


def renamed_words(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The names that are others in C."""
    yield from ((name, other) for name, other in names.items() if name != other)
