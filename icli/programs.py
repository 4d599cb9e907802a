"""The program that TEXT|FILE|- on a command line means: an expression, or the definitions of a module."""

# Importing pathlib takes as long as explaining a program does.
# ruff: noqa: PTH110

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ilang.core.diagnostic import CommandError, Error, gathered
from ilang.core.ir.graph import UNNAMED, Graph
from ilang.core.ir.syntax import Definition, Module, Name, Tree
from ilang.core.record import record

if TYPE_CHECKING:
    from ilang.codegen.components.component import Component
    from ilang.codegen.system.npy import Array
    from ilang.core.passes.syntax_to_graph import Definitions

DEFINES = r"\s*(op|cd|use)[ \t]+[A-Za-z_]|\s*[A-Za-z_][A-Za-z0-9_]*\s*(\([^()~]*\)\s*)?=(?![=>])"
"""The beginning of a module, which no expression has."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@record
class Subject:
    """A component to work on: wired, and what it was made from."""

    graph: Graph
    tree: Tree
    module: Module | None

    def component(self) -> Component:
        """The component that runs the program."""
        from ilang.codegen.components.component import Component
        from ilang.codegen.components.library import library
        from ilang.codegen.components.program import WrittenProgram
        from ilang.core.notation.components.arity import wires_of, wires_of_all

        if self.module is not None and isinstance(self.tree, Name):
            return library(self.module)[self.tree.name]
        definitions = _definitions(self.module)
        wires = wires_of(self.tree, wires_of_all(definitions))
        return Component(WrittenProgram(self.tree, wires, definitions))


def _definitions(module: Module | None) -> dict[str, Definition]:
    return {} if module is None else {d.name: d for d in module.definitions}


def is_file(argument: str) -> bool:
    """Whether an argument names a file rather than being a program itself."""
    if "~" in argument or "\0" in argument:
        return False
    return argument.endswith(".i") or os.path.exists(argument)


def open_program(argument: str) -> Tree | Module:
    """The program that an argument is, names, or reads from standard input; a text may hold definitions."""
    if argument == "-":
        from ilang.icli.files import read_standard_input

        return _from_input(read_standard_input())
    if is_file(argument):
        from ilang.codegen.system.files import read_module

        return read_module(argument)
    from ilang.core.pipeline import text_program

    return text_program(argument)


def _from_input(data: bytes) -> Tree | Module:
    """Standard input holds an expression, or a module: its first definition tells."""
    from ilang.core.notation.files.module import decode_module, parse_module
    from ilang.core.notation.lines import without_comments
    from ilang.core.pipeline import text_program

    source = decode_module(data, "<stdin>")
    if re.match(DEFINES, without_comments(source.text)):
        return parse_module(source)
    return text_program(source.text.rstrip("\r\n"), "<stdin>")


def chosen(program: Tree | Module, names: Sequence[str]) -> list[Definition] | None:
    """The definitions that were asked for: the named ones, or all that are exported; None for an expression.

    Raises: CommandError E0808, E0809. ModuleError E0441.
    """
    if not isinstance(program, Module):
        if names:
            raise CommandError(
                "E0809",
                f"--def {names[0]} names a definition, and this is an expression",
                help="leave --def out: an expression has no definitions",
            )
        return None
    from ilang.core.notation.files.module import exports, no_component

    exported = exports(program)
    if not names and not exported:
        raise no_component(program)
    if not names:
        return list(exported)
    heads = [each.head for each in program.functions_and_routines()]
    others = [each.name for each in heads if each.span.source.name == program.source.name]
    known = {definition.name: definition for definition in program.definitions}
    for name in names:
        if name in others:
            raise no_component(program, name)
        if name not in known:
            place = program.source.name
            components = (n for n, each in known.items() if each.span.source.name == place)
            raise unknown_definition(place, name, (*components, *others))
    return [known[name] for name in names]


def unknown_definition(file_name: str, name: str, known: Sequence[str]) -> CommandError:
    """The error for a name that a module does not define."""
    from ilang.core.suggestion import did_you_mean

    hint = did_you_mean(name, known, f"it defines {', '.join(known[:20])}")
    parts = [part.strip() for part in name.split(",")]
    if 1 < len(parts) and {*parts} <= {*known}:
        several = " ".join(f"--def {part}" for part in parts)
        hint = f"--def names one definition: --def {parts[0]}; i build takes several, {several}"
    return CommandError("E0808", f"{file_name} does not define {name or '(empty)'}", help=hint)


def subjects(program: Tree | Module, names: Sequence[str] = ()) -> list[Subject]:
    """The components of a program, wired, in order: of a module the named ones, or those it exports."""
    asked = chosen(program, names)
    if not isinstance(program, Module):
        return [expressed(program)]
    from ilang.core.pipeline import definitions_of

    known = definitions_of(program)
    return all_of(asked or (), lambda definition: defined(program, definition.name, known))


def all_of(items: Iterable[Item], action: Callable[[Item], Result]) -> list[Result]:
    """The results of an action for each item.

    Raises: Error, the first refusal, which brings those of the other items with it.
    """
    results: list[Result] = []
    refused: list[Error] = []
    for item in items:
        try:
            results.append(action(item))
        except Error as error:
            refused.append(error)
    if refused:
        raise gathered(refused)
    return results


def defined(module: Module, name: str, definitions: Definitions | None = None) -> Subject:
    """A definition of a module; for many of them, ``definitions`` are found once."""
    from ilang.core.pipeline import definitions_of, module_graph

    known = definitions_of(module) if definitions is None else definitions
    return Subject(module_graph(module, name, known), Name(name, known[name].span), module)


def expressed(tree: Tree, module: Module | None = None) -> Subject:
    """An expression, which may use the definitions of a module."""
    from ilang.core.pipeline import graph_of

    return Subject(graph_of(tree, UNNAMED, _definitions(module)), tree, module)


def one_subject(program: Tree | Module, name: str | None) -> Subject:
    """The one component that a command works on.

    Raises: CommandError E0818 if a module exports several and none is named.
    """
    given = () if name is None else (name,)
    asked = chosen(program, given)
    if asked is None or len(asked) == 1:
        return subjects(program, given)[0]
    raise several([definition.name for definition in asked])


def named_results(names: Sequence[str], answer: object) -> list[tuple[str, Array]]:
    """The results of a call, each with its name."""
    answers = answer if isinstance(answer, tuple) else () if answer is None else (answer,)
    return list(zip(names, answers, strict=True))


def several(names: Sequence[str]) -> CommandError:
    """The error for several definitions where a command works on one."""
    return CommandError(
        "E0818",
        f"there are {len(names)} definitions to choose from: {', '.join(names[:20])}",
        help=f"choose one: --def {names[0]}",
    )


def _graph_shapes(graph: Graph, pairs: Sequence[tuple[str, str]]) -> tuple[tuple[int, ...], ...]:
    """The shapes of all inputs of a component, which options give.

    Raises: CommandError E0810, E0811 (not one for each input).
    """
    from ilang.icli.shapes import parse_shape, shapes_by_name, wrong_count

    inputs = graph.input_names()
    owner = "the program" if graph.name == UNNAMED else graph.name
    extents = {shape: parse_shape(shape) for _, shape in pairs}
    given = shapes_by_name(pairs, inputs, owner)
    missing = [name for name in inputs if name not in given]
    if missing:
        raise wrong_count(f"gives none for {', '.join(missing[:20])}", inputs, owner)
    return tuple(extents[given[name]] for name in inputs)


def all_shapes(
    graphs: Sequence[Graph], options: Sequence[str]
) -> list[tuple[Graph, tuple[tuple[int, ...], ...] | None]]:
    """Components with the shapes of their inputs that options give.

    Raises: CommandError E0807, E0810, E0811, E0814.
    """
    if not options:
        return [(graph, None) for graph in graphs]
    from ilang.icli.shapes import check_names, written_shapes

    pairs = written_shapes(options)
    check_names(pairs, [name for graph in graphs for name in graph.input_names()])
    return all_of(graphs, lambda graph: (graph, _graph_shapes(graph, pairs)))
