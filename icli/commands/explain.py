"""``i explain``: what a program does, or what an error code means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import Module
from ilang.core.pipeline import STAGES
from ilang.icli.codes import answer, is_code
from ilang.icli.options import JSON, Command, Operand, Option, Request
from ilang.icli.programs import all_of, flag_shapes, is_file, open_program, refuse_cuda, subjects
from ilang.icli.screen import Screen, as_json
from ilang.icli.shapes import parse_shapes

if TYPE_CHECKING:
    from ilang.core.explain.explanation import Explanation

Shapes = Sequence[tuple[int, ...]] | None

EMITTED = (*STAGES, "c", "cuda")
WRITTEN = "nests"
"""What ``--schedule`` prints: every expression with its schedule, as it could be pasted back."""


def run(request: Request, screen: Screen) -> int:
    """Print the page of each component that the operand holds."""
    argument = request.operands[0]
    if is_code(argument) and not is_file(argument):
        text, told = answer(argument)
        screen.write(as_json(told) + "\n" if screen.json else text)
        return 0
    written = request.one("--shape")
    shapes = None if written is None else parse_shapes(written)
    program = open_program(argument)
    name = request.one("--def")
    graphs = [each.graph for each in subjects(program, () if name is None else (name,))]
    all_of(graphs, lambda graph: flag_shapes(graph, shapes))
    stage = WRITTEN if request.has("--schedule") else request.one("--emit")
    titled = isinstance(program, Module) and len(graphs) > 1
    if screen.json:
        answers = all_of(graphs, lambda graph: _object(graph, shapes, stage))
        whole = {"definitions": answers} if titled else answers[0]
        screen.write_exact(as_json(whole) + "\n")
        return 0
    shown = 0

    def show(graph: Graph) -> None:
        nonlocal shown
        title = f"{_title(graph, shapes)}\n\n" if titled else ""
        page = _page(graph, shapes, stage, request.has("--verbose"))
        screen.write(("\n\n" if shown else "") + title)
        if isinstance(page, str):
            screen.write(page.rstrip("\n") + "\n")
        else:
            screen.page(page)
        shown += 1

    all_of(graphs, show)
    return 0


def _page(graph: Graph, shapes: Shapes, stage: str | None, verbose: bool) -> str | Explanation:
    """What is said of one component: everything, or its text at one stage of its way down."""
    from ilang.core.pipeline import explain

    return explain(graph, shapes, verbose) if stage is None else emitted(graph, shapes, stage)


def _title(graph: Graph, shapes: Shapes) -> str:
    """The line above one of several pages."""
    from ilang.core.explain.page import signature
    from ilang.core.pipeline import infer

    return signature(infer(graph, shapes=shapes))


def _object(graph: Graph, shapes: Shapes, stage: str | None) -> dict[str, object]:
    """The answer for one component as a JSON-ready object."""
    from ilang.core.explain.page import as_data
    from ilang.core.pipeline import explain

    if stage is not None:
        return {"name": graph.name, "emit": stage, "text": emitted(graph, shapes, stage)}
    data = as_data(explain(graph, shapes, verbose=True))
    assert isinstance(data, dict)
    return {"name": graph.name, **data}


def emitted(graph: Graph, shapes: Shapes, stage: str) -> str:
    """The text of a component at one stage of its way down."""
    from ilang.core import pipeline

    refuse_cuda(stage)
    if stage == WRITTEN:
        from ilang.core.explain.page import schedule_text

        return schedule_text(pipeline.explain(graph, shapes).schedule)
    if stage in STAGES:
        return pipeline.stage_text(graph, stage, shapes)
    from ilang.codegen.targets.c import emit

    return emit(pipeline.lower(pipeline.infer(graph, shapes=shapes)))


COMMAND = Command(
    "explain",
    "Say what a program does: shapes, loops, cost; or what an error code means.",
    "TEXT|FILE|-",
    1,
    1,
    (
        Option(
            ("--def",),
            "NAME",
            "One definition of a file; otherwise all that it exports",
            names_a="definition",
        ),
        Option(("--shape",), "SHAPES", "Shapes of the inputs: 32x64,64x16; a scalar is `.`"),
        Option(("--emit",), "STAGE", "Print one stage of the way down instead", EMITTED),
        Option(("--schedule",), None, "Print the schedule that runs, in the notation of schedules"),
        Option(("-v", "--verbose"), None, "Say also how every extent and type was found"),
        JSON,
    ),
    run,
    (Operand("program or code"),),
    "i explain CODE says what an error means, such as E0103; CODE may also be codes, for all of them.",
)
