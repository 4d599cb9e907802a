"""``i check``: everything that can be known about a program before it meets data."""

from __future__ import annotations

from ilang.core.diagnostic import Error, as_object
from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import Module
from ilang.icli.options import JSON, Command, Request
from ilang.icli.programs import graphs, open_program
from ilang.icli.screen import Screen, as_json


def run(request: Request, screen: Screen) -> int:
    """Check every definition; print a line for each that holds, a diagnostic for each that does not."""
    program = open_program(request.operands[0])
    names = [d.name for d in program.definitions] if isinstance(program, Module) else [None]
    status, answers = 0, []
    for name in names:
        try:
            graph = graphs(program, () if name is None else (name,))[0]
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
    from ilang.core.pipeline import explain
    from ilang.icli.plain import signature

    return signature(graph.name, explain(graph, None))


COMMAND = Command(
    "check",
    "Check every definition: text, wiring, shapes, types, schedules; print what each takes and gives.",
    "TEXT|FILE|-",
    1,
    1,
    (JSON,),
    run,
)
