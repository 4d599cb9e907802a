"""What TEXT|FILE|- on a command line means: an expression, or the definitions of a module."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ilang.core.diagnostic import CommandError, nearest
from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import Definition, Module, Tree
from ilang.icli.files import read_program_bytes, read_standard_input

DEFINES = re.compile(r"\s*[A-Za-z_][A-Za-z0-9_]*\s*(\([^()~]*\)\s*)?=(?![=>])")
"""How a module begins, and no expression does."""

TEXT_NAME = "program"
"""What an expression without a name is built as."""


def is_file(argument: str) -> bool:
    """Whether an argument names a file rather than being a program itself."""
    if "~" in argument or "\0" in argument:
        return False
    return argument.endswith(".i") or os.path.exists(argument)


def open_program(argument: str) -> Tree | Module:
    """The program that an argument is, names, or reads from standard input."""
    if argument == "-":
        return _from_input(read_standard_input())
    if is_file(argument):
        return open_module(argument)
    from ilang.core.pipeline import text_component

    return text_component(argument)


def open_module(path: str) -> Module:
    """The definitions of a file."""
    from ilang.core.notation.module import decode_module, parse_module

    return parse_module(decode_module(read_program_bytes(path), path))


def _from_input(data: bytes) -> Tree | Module:
    """Standard input holds an expression, or a module: its first definition tells."""
    from ilang.core.notation.module import decode_module, parse_module, without_comments
    from ilang.core.pipeline import text_component

    source = decode_module(data, "<stdin>")
    if DEFINES.match(without_comments(source.text)):
        return parse_module(source)
    return text_component(source.text.rstrip("\r\n"), "<stdin>")


def chosen(program: Tree | Module, names: Sequence[str]) -> list[Definition] | None:
    """The definitions that were asked for: the named ones, or all that are exported; None for an expression.

    Raises: CommandError E0808, E0809.
    """
    if not isinstance(program, Module):
        if names:
            raise CommandError("E0809", f"--def {names[0]} names a definition, and this is an expression")
        return None
    from ilang.core.notation.module import exports

    if not names:
        return list(exports(program))
    known = {definition.name: definition for definition in program.definitions}
    for name in names:
        if name not in known:
            raise unknown_definition(program.source.name, name, tuple(known))
    return [known[name] for name in names]


def unknown_definition(where: str, name: str, known: Sequence[str]) -> CommandError:
    """The error for a name that a module does not define."""
    guess = nearest(name, known)
    return CommandError(
        "E0808",
        f"{where} does not define {name or '(empty)'}",
        help=f"did you mean {guess}?" if guess else f"it defines {', '.join(known[:20])}",
    )


def graphs(program: Tree | Module, names: Sequence[str] = ()) -> list[Graph]:
    """The components of a program, wired, in order."""
    from ilang.core.pipeline import graph_of, module_graph

    definitions = chosen(program, names)
    if isinstance(program, Module) and definitions is not None:
        return [module_graph(program, definition.name) for definition in definitions]
    assert not isinstance(program, Module)
    return [graph_of(program, TEXT_NAME)]


def one_graph(program: Tree | Module, name: str | None) -> Graph:
    """The one component that a command works on.

    Raises: CommandError E0818 if a module exports several and none is named.
    """
    found = graphs(program, () if name is None else (name,))
    if len(found) == 1:
        return found[0]
    names = [graph.name for graph in found]
    raise CommandError(
        "E0818",
        f"there are {len(found)} definitions to choose from: {', '.join(names[:20])}",
        help=f"choose one: --def {names[0]}",
    )


def flag_shapes(graph: Graph, shapes: Sequence[tuple[int, ...]] | None) -> None:
    """Refuse a number of shapes that is not the number of inputs.

    Raises: CommandError E0811.
    """
    if shapes is None or len(shapes) == len(graph.inputs):
        return
    inputs = [graph.input_name(number) for number in range(len(graph.inputs))]
    takes = f"{graph.name} takes {len(inputs)}" + (f": {', '.join(inputs[:20])}" if inputs else "")
    raise CommandError("E0811", f"--shape gives {len(shapes)} shapes, and {takes}")

