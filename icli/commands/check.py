"""``i check``: everything that can be known about a program before it meets data."""

from __future__ import annotations

from ilang.core.diagnostic import Error, as_object
from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import Module
from ilang.icli.options import JSON, Command, Request
from ilang.icli.programs import open_program, subjects
from ilang.icli.screen import Screen, as_json


def run(request: Request, screen: Screen) -> int:
    """Check every definition; print a line for each that holds, a diagnostic for each that does not."""
    program = open_program(request.operands[0])
    names: list[str | None] = [None]
    if isinstance(program, Module):
        names = [definition.name for definition in program.definitions]
    status = 0
    answers: list[dict[str, object]] = []
    for name in names:
        try:
            graph = subjects(program, () if name is None else (name,))[0].graph
            line = describe(graph)
        except Error as error:
            status = max(status, error.status)
            answers.append({"name": name, "error": as_object(error)})
            if not screen.json:
                screen.complain(error)
        else:
            answers.append({"name": graph.name, "takes": line})
            if not screen.json:
                screen.write(line + "\n")
    if screen.json:
        screen.write(as_json({"ok": status == 0, "definitions": answers}) + "\n")
    return status


def describe(graph: Graph) -> str:
    """A component in one line: ``attention(q[m,d], k[n,d], v[n,d]) -> [m,d]``."""
    from ilang.core.pipeline import infer, lower
    from ilang.icli.plain import signature

    shaped = infer(graph)
    lower(shaped)
    return signature(shaped)


COMMAND = Command(
    "check",
    "Check every definition: text, wiring, shapes, types, schedules; print what each takes and gives.",
    "TEXT|FILE|-",
    1,
    1,
    (JSON,),
    run,
)
