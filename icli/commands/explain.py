"""``i explain``: what a program does, or what an error code means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, Error
from ilang.core.ir.graph import Graph
from ilang.core.ir.syntax import Module, Tree
from ilang.core.machine import MACHINES, Machine
from ilang.core.pipeline import GRADIENTS, STAGES, stages_of
from ilang.core.steps import RENAMED
from ilang.icli.codes import answer, is_code
from ilang.icli.command import (
    CONFIG,
    JSON,
    SHAPE,
    Command,
    CommandOperand,
    Option,
    Request,
    whole_number,
)
from ilang.icli.programs import all_of, all_shapes, is_file, open_program, subjects
from ilang.icli.screen import Screen
from ilang.icli.signs import Page, sign_page, word_page

if TYPE_CHECKING:
    from ilang.codegen.session.function import Function
    from ilang.core.explain.explanation import Explanation

Shapes = Sequence[tuple[int, ...]] | None

EMITTED = (*STAGES, GRADIENTS.stage, *MACHINES)
WRITTEN = "nests"
"""The stage that ``--schedule`` prints: every expression with its schedule, as it could be pasted back."""
WHY = "why"
"""The stage that ``--why`` prints: what was compared where prices chose a schedule."""


def run(request: Request, screen: Screen) -> int:
    """Print the page of each component that the operand holds."""
    argument = request.operands[0]
    if request.has("--html"):
        return _write_page(argument, request, screen)
    if is_code(argument) and not is_file(argument):
        text, data = answer(argument)
        screen.write_json(data) if screen.json else screen.write(text)
        return 0
    named = not (request.has("--shape") or request.has("--emit"))
    program = open_program(argument) if request.plain else _program(argument, named)
    if isinstance(program, tuple):
        text, data = program
        screen.write_json(data) if screen.json else screen.write(text)
        return 0
    name = request.one("--def")
    if isinstance(program, Module):
        from ilang.icli.definitions import functions_of

        functions = functions_of(program, name)
        if functions:
            return _definitions(functions, request, screen)
    graphs = [each.graph for each in subjects(program, () if name is None else (name,))]
    shaped = all_shapes(graphs, request.all("--shape"))
    stage = _stage(request, WRITTEN)
    target = _target(request.one("--target"), stage)
    titled = isinstance(program, Module) and len(graphs) > 1
    if screen.json:
        answers = all_of(shaped, lambda each: _object(*each, stage, target))
        screen.write_json({"definitions": answers} if titled else answers[0])
        return 0
    shown = 0

    def show(graph: Graph, shapes: Shapes) -> None:
        nonlocal shown
        title = f"{_title(graph, shapes)}\n\n" if titled else ""
        page = _page(graph, shapes, stage, target, request.has("--verbose"))
        screen.write("\n\n" if shown else "")
        if isinstance(page, str):
            screen.write(title + page.rstrip("\n") + "\n")
        elif request.has("--verbose"):
            screen.write(title)
            screen.listing(page)
        else:
            _show_first(page, request, screen)
        shown += 1

    all_of(shaped, lambda each: show(*each))
    return 0


def _write_page(argument: str, request: Request, screen: Screen) -> int:
    """Write the page on the one program of an operand for a browser."""
    from ilang.codegen.components.html_page import html_page, write_html_page
    from ilang.icli.staged import one_program

    for other in ("--json", "--emit", "--loops", "--schedule", "--why", "--verbose", "--ascii"):
        if request.has(other):
            message = f"--html has a page of everything, and {other} says how to print a part"
            raise CommandError("E0830", message, help=f"leave {other} out, or --html")
    program, target = one_program(argument, request), request.one("--target") or "c"
    place, given = request.one("--html") or "", request.has("--shape")
    if place == "-":
        page = html_page(program.graph(), program.shaped(), target, given)
        screen.write_bytes(page.encode())
    else:
        write_html_page(place, program.graph(), program.shaped(), target, given)
    return 0


def _program(argument: str, named: bool) -> Tree | Module | Page:
    """The program that an operand means; or the page on a sign, or on a word that is ``named`` alone, or no program.

    Raises: Error (it is neither).
    """
    is_word = argument.isidentifier() and not is_file(argument)
    page = None if argument == "-" or is_file(argument) else sign_page(argument)
    page = word_page(argument) if page is None and is_word and named else page
    if page is not None:
        return page
    try:
        return open_program(argument)
    except Error:
        page = word_page(argument) if is_word else None
        if page is None:
            raise
        return page


def _show_first(page: Explanation, request: Request, screen: Screen) -> None:
    """Print the first page, or how the program runs."""
    from ilang.core.explain.first_page import first_page, loops_page

    width = whole_number(request, "--width", screen.columns(), least=40)
    shown = loops_page if request.has("--loops") else first_page
    screen.write_page(shown(page, width, request.has("--ascii")))


def _definitions(functions: Sequence[Function], request: Request, screen: Screen) -> int:
    """Print what is told of tensor functions and routines."""
    from ilang.core.explain.page import as_data, page_data
    from ilang.icli.definitions import (
        config_of,
        given_to,
        head_of,
        page_of,
        settings_of,
        shapes_of,
        stage_text,
    )

    shapes = shapes_of(request.all("--shape"), functions)
    values = config_of(request.all("--config"), [head_of(each) for each in functions])
    stage = _stage(request, "schedule")
    target = _target(request.one("--target"), None if stage == GRADIENTS.stage else stage)

    def answer_of(function: Function) -> dict[str, object]:
        given, config = given_to(function, shapes), settings_of(head_of(function), values)
        if stage is not None:
            text = stage_text(function, given, config, stage, target)
            return {"name": function.name, "emit": stage, "text": text}
        if not given and head_of(function).tensors:
            return {"name": function.name, "rows": as_data(function.shape_so_far({}, config))}
        page = function.explain(given, config, machine=MACHINES[target])
        lasting = {"parameters": as_data(page.parameters), "state": as_data(page.state)}
        return {"name": function.name, **lasting, "program": page_data(page.program)}

    def shown(function: Function) -> str:
        given, config = given_to(function, shapes), settings_of(head_of(function), values)
        if stage is not None:
            return stage_text(function, given, config, stage, target).rstrip("\n") + "\n"
        return page_of(function, given, config, MACHINES[target], request.has("--verbose"))

    if screen.json:
        answers = all_of(functions, answer_of)
        screen.write_json({"definitions": answers} if len(functions) > 1 else answers[0])
        return 0
    screen.write("\n\n".join(all_of(functions, shown)))
    return 0


def _stage(request: Request, written: str) -> str | None:
    """The stage that is asked for, if one is; ``written`` is that of ``--schedule``."""
    if request.has("--why"):
        return WHY
    return written if request.has("--schedule") else request.one("--emit")


def _target(written: str | None, stage: str | None) -> str:
    """The target that is meant: the one that is named, or the first one that has the stage.

    Raises: CommandError E0804 if the target that is named has no such stage.
    """
    names = [name for name, machine in MACHINES.items() if _has(name, machine, stage)]
    if not names:
        message = f"{stage} is a stage of tensor functions and routines, `op` and `cd`"
        raise CommandError("E0804", message, help="`i grad` prints the gradient of a component")
    if written is None or written in names:
        return written or names[0]
    raise CommandError(
        "E0804",
        f"--target {written} has no stage {stage}",
        help=f"that is a stage of --target {names[0]}",
    )


def _has(target: str, machine: Machine, stage: str | None) -> bool:
    return stage in (None, WRITTEN, WHY, target, *stages_of(machine))


def _page(
    graph: Graph, shapes: Shapes, stage: str | None, target: str, verbose: bool
) -> str | Explanation:
    """The page on one component: everything, or its text at one stage of its way down."""
    from ilang.core.pipeline import explain

    if stage is not None:
        return emitted(graph, shapes, stage, target)
    page = explain(graph, shapes, verbose, MACHINES[target])
    return _asked(page, graph, shapes) if verbose and page.occupancy else page


def _asked(page: Explanation, graph: Graph, shapes: Shapes) -> Explanation:
    """A page of a program for a GPU with the registers that nvcc takes, where it is."""
    from ilang.codegen.device.registers import registers_of
    from ilang.core.explain.occupancy import occupancy_rows
    from ilang.core.pipeline import infer, lower
    from ilang.core.record import replace

    program = lower(infer(graph, shapes=shapes), MACHINES["cuda"])
    return replace(page, occupancy=occupancy_rows(program, registers_of(program)))


def _title(graph: Graph, shapes: Shapes) -> str:
    """The line above one of several pages."""
    from ilang.core.explain.page import signature
    from ilang.core.pipeline import infer

    return signature(infer(graph, shapes=shapes))


def _object(graph: Graph, shapes: Shapes, stage: str | None, target: str) -> dict[str, object]:
    """The answer for one component as a JSON-ready object."""
    from ilang.core.explain.page import as_data, page_data
    from ilang.core.pipeline import explain, infer, why

    if stage == WHY:
        reasons = as_data(why(infer(graph, shapes=shapes), MACHINES[target]))
        assert isinstance(reasons, dict)
        return {"name": graph.name, **reasons}
    if stage is not None:
        return {"name": graph.name, "emit": stage, "text": emitted(graph, shapes, stage, target)}
    page = explain(graph, shapes, verbose=True, machine=MACHINES[target])
    return {"name": graph.name, **page_data(page)}


def emitted(graph: Graph, shapes: Shapes, stage: str, target: str = "c") -> str:
    """The text of a component at one stage of its way down to a target."""
    from ilang.core import pipeline

    machine = MACHINES[target]
    if stage == WRITTEN:
        from ilang.core.explain.page import schedule_text

        return schedule_text(pipeline.explain(graph, shapes, machine=machine))
    if stage == WHY:
        return str(pipeline.why(pipeline.infer(graph, shapes=shapes), machine))
    if stage in STAGES:
        return pipeline.stage_text(graph, stage, shapes, machine)
    from ilang.codegen.targets import c, cuda

    program = pipeline.lower(pipeline.infer(graph, shapes=shapes), machine)
    return cuda.emit(program) if target == "cuda" else c.emit(program)


COMMAND = Command(
    "explain",
    "Show what a program computes, with its loops and its work; or explain an error code.",
    run,
    (CommandOperand("program", "TEXT|FILE|CODE|SIGN|WORD|-", "program or code"),),
    (
        Option(
            ("--def",),
            "NAME",
            "Explain this definition; default: those that no other definition uses",
            "definition",
        ),
        SHAPE,
        CONFIG,
        Option(("--target",), "TARGET", "The machine to compile for", tuple(MACHINES)),
        Option(
            ("--html",),
            "FILE",
            "Write a page for a browser: formulas, data flow, loops and code side by side, and every stage",
        ),
        Option(("--loops",), None, "Print how the program runs: its loops, tiles and vectors"),
        Option(
            ("--emit",),
            "STAGE",
            "Print one stage of the compiler instead",
            EMITTED,
            renamed=RENAMED,
        ),
        Option(("--schedule",), None, "Print the schedule, as it can be written in the program"),
        Option(
            ("--why",),
            None,
            "Print why loops are as they are: the best tiles of each contraction, and their prices",
        ),
        Option(
            ("-v", "--verbose"),
            None,
            "Print every step, the loops that run, and how every extent was found",
        ),
        Option(("--ascii",), None, "Write formulas without characters beyond ASCII: sum_k, *"),
        Option(
            ("--width",), "N", "Columns of the page; default: those of the terminal, 80 in a pipe"
        ),
        JSON,
    ),
    "TEXT is a program, FILE a file of definitions, and `-` standard input.\n\n"
    "\b\nExamples:\n  i explain 'ik*kj~ijk >> +ijk~ij' --shape 64x32,32x16\n"
    "  i explain model.i --emit c\n"
    "  i explain '>'      a sign; after -- it is a program\n"
    "  i explain sum      a word of NumPy; `i explain numpy` lists all\n"
    "  i explain E0103    an error; `i explain codes` lists all",
)
