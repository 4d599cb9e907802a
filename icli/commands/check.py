"""``i check``: everything that can be known about a program before it meets data."""

from __future__ import annotations

from ilang.core.diagnostic import Error, ScheduleError, ShapeError, ToolError, as_object, gathered
from ilang.core.ir.graph import Graph
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.syntax import Module
from ilang.icli.options import JSON, Command, Request
from ilang.icli.programs import open_program, subjects
from ilang.icli.screen import Screen, as_json


def run(request: Request, screen: Screen) -> int:
    """Check every definition; print a line for each that holds, then a diagnostic for each mistake."""
    program = open_program(request.operands[0])
    from ilang.core.notation.module import exports

    names: list[str | None] = [None]
    exported: set[str] = set()
    if isinstance(program, Module):
        names = [definition.name for definition in program.definitions]
        exported = {definition.name for definition in exports(program)}
    status = 0
    answers: list[dict[str, object]] = []
    refused: list[Error] = []
    for name in names:
        try:
            graph = subjects(program, () if name is None else (name,))[0].graph
            line, shaped = describe(graph, name is not None and name not in exported)
            said = None if shaped is None else compared(shaped)
        except Error as error:
            status = max(status, error.status)
            answers.append({"name": name, "error": as_object(error)})
            refused.append(error)
        else:
            told = {} if said is None else {"schedule": said}
            answers.append({"name": graph.name, "takes": line, **told})
            if not screen.json:
                screen.write(line + ("" if said is None else f"   {said['says']}") + "\n")
    if refused and not screen.json:
        screen.complain(gathered(refused))
    if screen.json:
        screen.write_exact(as_json({"ok": status == 0, "definitions": answers}) + "\n")
    return status


def compared(shaped: Shaped) -> dict[str, object] | None:
    """How the written schedules of a program were checked; None where it has none.

    Without a C compiler they are checked to be legal, no more.
    """
    from ilang.core.ir.shaped import Assignment

    if not any(isinstance(node, Assignment) and node.schedule for node in shaped.nodes):
        return None
    from ilang.codegen.comparison import compare

    try:
        found = compare(shaped)
    except ToolError as error:
        if error.code != "E0901":
            raise
        return {"runs": 0, "sanitized": False, "says": "schedule legal; not run: no C compiler"}
    if not found.runs:
        says = "schedule legal; not run: too large"
    else:
        checks = ", with sanitizers" if found.sanitized else ""
        count = f"{found.runs} set{'s' if found.runs > 1 else ''} of extents"
        says = f"schedule legal; right at {count}{checks}"
    return {"runs": found.runs, "sanitized": found.sanitized, "says": says}


def describe(graph: Graph, is_part: bool) -> tuple[str, Shaped | None]:
    """A component in one line, ``attention(q[m,d], k[n,d], v[n,d]) -> [m,d]``, and what was inferred of it.

    A part of others may be of any rank, and its schedule legal only inside its users: they decide.
    """
    from ilang.core.pipeline import infer, lower
    from ilang.icli.plain import signature

    try:
        shaped = infer(graph)
    except ShapeError as error:
        if not is_part or error.code != "E0508":
            raise
        inputs = (graph.input_name(number) for number in range(len(graph.inputs)))
        return f"{graph.name}({', '.join(inputs)}) of any rank", None
    try:
        lower(shaped)
    except ScheduleError:
        if not is_part:
            raise
        return f"{signature(shaped)}   schedule for its users alone", None
    return signature(shaped), shaped


COMMAND = Command(
    "check",
    "Check every definition: text, wiring, shapes, types, schedules; print what each takes and gives.",
    "TEXT|FILE|-",
    1,
    1,
    (JSON,),
    run,
)
