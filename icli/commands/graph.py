"""``i graph``: the data flow of a program, as text, as a picture, or for Mermaid and Graphviz."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError
from ilang.core.machine import MACHINES
from ilang.icli.command import CONFIG, JSON, SHAPE, Command, CommandOperand, Option, Request
from ilang.icli.programs import all_of
from ilang.icli.screen import Screen
from ilang.icli.staged import ProgramAtShapes, one_program, staged_programs

if TYPE_CHECKING:
    from ilang.core.explain.dataflow import FlowGraph

FORMATS = ("text", "svg", "mermaid", "dot")
ENDINGS = {".svg": "svg", ".mmd": "mermaid", ".dot": "dot", ".gv": "dot", ".txt": "text"}
STARTS = {"text": b"data flow of ", "svg": b"<svg", "mermaid": b"flowchart", "dot": b"digraph"}
"""The first bytes of each form, by which a file that is replaced is told."""
STAGES = ("graph", "shapes", "schedule")


def run(request: Request, screen: Screen) -> int:
    """Print the graph of each component that the operand holds, or write that of one to a file."""
    argument, place = request.operands[0], request.one("-o")
    form = _form(request, place)
    if form == "text" and place is None:
        flows = all_of(staged_programs(argument, request), lambda each: _flow(each, request))
    else:
        flows = [_flow(one_program(argument, request), request)]
    if screen.json:
        from ilang.core.explain.page import as_data

        answers = [as_data(flow) for flow in flows]
        screen.write_json({"graphs": answers})
        return 0
    width = screen.width(sys.stdout)
    texts = [drawn(flow, form, request.has("--ascii"), width) for flow in flows]
    if place is None:
        screen.write_exact("\n".join(texts))
    else:
        _save(place, form, texts[0])
    return 0


def _form(request: Request, place: str | None) -> str:
    """The form that is asked for, by its name or by the end of the file's.

    Raises: CommandError E0812 (the end of the name says none), E0830 (options of which one has no use).
    """
    form = request.one("--format")
    if request.has("--json") and (form or place is not None):
        message = f"--json and {'-o' if form is None else '--format'} are two forms of the graph"
        raise CommandError("E0830", message, help="give one of them")
    if form is None and place is not None:
        form = next((name for end, name in ENDINGS.items() if place.endswith(end)), None)
        if form is None:
            message = f"-o {place or '(empty)'} must end in {', '.join(ENDINGS)}"
            raise CommandError("E0812", message, help="-o graph.svg, or say --format")
    form = form or "text"
    if request.has("--ascii") and form != "text":
        message = f"--ascii is of the text, not of {form}"
        raise CommandError("E0830", message, help="leave one of them out")
    return form


def _flow(program: ProgramAtShapes, request: Request) -> FlowGraph:
    """The graph of a program at the stage that is asked for: else as far down as shapes are known."""
    from ilang.core.explain import dataflow
    from ilang.core.pipeline import schedule

    stage = request.one("--emit") or ("graph" if program.is_open() else "schedule")
    if stage == "graph":
        return dataflow.flow_of_graph(program.graph())
    if stage == "shapes":
        return dataflow.flow_of_shaped(program.shaped())
    return dataflow.flow_of_schedule(
        schedule(program.shaped(), MACHINES[request.one("--target") or "c"])
    )


def drawn(flow: FlowGraph, form: str, ascii_only: bool, width: int | None) -> str:
    """A graph in a form; the text in lines of a width."""
    if form == "svg":
        from ilang.core.explain.dataflow_svg import svg_text

        return svg_text(flow)
    from ilang.core.explain import dataflow_text

    if form == "text":
        return dataflow_text.plain_text(flow, ascii_only, width)
    return dataflow_text.mermaid_text(flow) if form == "mermaid" else dataflow_text.dot_text(flow)


def _save(place: str, form: str, text: str) -> None:
    """Write a graph to a file, where no file of another kind is."""
    from ilang.codegen.system.outputs import FileKind, begins_with, write_output

    kind = FileKind(f"a graph as {form}", begins_with(STARTS[form]))
    write_output(place, kind, lambda out: out.write(text.encode()))


COMMAND = Command(
    "graph",
    "Show the data flow of a program: what each value is computed from, and by which kernel.",
    run,
    (CommandOperand("program", "TEXT|FILE|-", "program"),),
    (
        Option.of_definition("Show this definition; default: those that no other definition uses"),
        SHAPE,
        CONFIG,
        Option("--target", "TARGET", "The machine whose kernels are shown", tuple(MACHINES)),
        Option("--emit", "STAGE", "The program at this stage; default: schedule, which shows kernels; graph of an"
               " `op` or `cd` without shapes", STAGES),
        Option("--format", "FORM", "The form; default: that of the end of the file's name, else text", FORMATS),
        Option("-o", "FILE", "Write a file: .svg, .mmd, .dot, .txt"),
        Option("--ascii", None, "Draw the text without characters beyond ASCII"),
        JSON,
    ),
    "A dashed box is a value that is never stored: its kernel computes it where it is used.\n\n"
    "\b\nExamples:\n  i graph '(I & +ij~i) >> ij/i~ij'\n"
    "  i graph model.i -o model.svg\n"
    "  i graph net.i --def net --shape 'x=8|3' --format mermaid",
)  # fmt: skip
