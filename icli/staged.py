"""Programs of every kind on their way down: a component, or a tensor function or routine for shapes.

``i graph`` and ``i diff`` ask the same of both: the graph, and what is inferred of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ilang.core.ir.syntax import Module
from ilang.core.record import record
from ilang.icli.command import Request
from ilang.icli.programs import all_shapes, open_program, subjects

if TYPE_CHECKING:
    from ilang.codegen.session.function import Function
    from ilang.core.build.program import Given
    from ilang.core.ir.graph import Graph
    from ilang.core.ir.shaped import Shaped


@record
class StagedProgram:
    """A program to look at: its graph, and what is inferred of it.

    A tensor function or a routine that has inputs without shapes is ``open``: it has a graph alone.
    """

    name: str
    graph: Callable[[], Graph]
    shaped: Callable[[], Shaped]
    open: bool = False


def staged_programs(argument: str, request: Request) -> list[StagedProgram]:
    """The programs of an operand that ``--def`` means, for the shapes and the configuration of the options.

    Raises: Error (what is wrong with the program, or with an option).
    """
    program, name = open_program(argument), request.one("--def")
    if isinstance(program, Module):
        from ilang.icli.definitions import functions_of

        functions = functions_of(program, name)
        if functions:
            from ilang.icli.definitions import config_of, head_of, shapes_of

            shapes = shapes_of(request.all("--shape"), functions)
            values = config_of(request.all("--config"), [head_of(each) for each in functions])
            return [_definition(each, shapes, values) for each in functions]
    graphs = [each.graph for each in subjects(program, () if name is None else (name,))]
    return [_component(*each) for each in all_shapes(graphs, request.all("--shape"))]


def one_program(argument: str, request: Request) -> StagedProgram:
    """The only program of an operand. Raises: CommandError E0818 (there are several), and what else is wrong."""
    first, *others = staged_programs(argument, request)
    if others:
        from ilang.icli.programs import several

        raise several([each.name for each in (first, *others)])
    return first


def _component(graph: Graph, shapes: tuple[tuple[int, ...], ...] | None) -> StagedProgram:
    def shaped() -> Shaped:
        from ilang.core.pipeline import infer

        return infer(graph, shapes=shapes)

    return StagedProgram(graph.name, lambda: graph, shaped)


def _definition(
    function: Function, shapes: Mapping[str, str], values: Mapping[str, Given]
) -> StagedProgram:
    from ilang.icli.definitions import given_to, head_of, settings_of

    given, config = given_to(function, shapes), settings_of(head_of(function), values)
    return StagedProgram(
        function.name,
        lambda: function.graph(given, config),
        lambda: function.shaped(given, config),
        bool(head_of(function).tensors) and not given,
    )
