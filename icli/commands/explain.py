"""``i explain``: what a program does, or what an error code means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, Error
from ilang.core.ir.syntax import Module, Tree
from ilang.core.machine import MACHINES
from ilang.core.pipeline import GRADIENTS, STAGES, stages_of
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
from ilang.icli.programs import all_of, is_file, open_program
from ilang.icli.screen import Screen
from ilang.icli.signs import WORD, Page, near, sign_page, word_page
from ilang.icli.staged import (
    WHY,
    WRITTEN,
    ComponentAtShapes,
    DefinitionAtShapes,
    ProgramAtShapes,
    one_program,
    programs_of,
    stage_of,
)

if TYPE_CHECKING:
    from ilang.core.explain.explanation import Explanation

EMITTED = (*STAGES, GRADIENTS.stage, *MACHINES)


def run(request: Request, screen: Screen) -> int:
    """Print the page of each component that the operand holds."""
    if not request.operands and request.values.keys() - {"--json", "--color"}:
        from ilang.icli.refusals import too_few

        raise too_few("explain", "TEXT|FILE|CODE|SIGN|WORD|-")
    argument = request.operands[0] if request.operands else "words"
    if request.has("--html"):
        return _write_page(argument, request, screen)
    program = _program(argument, request)
    if isinstance(program, tuple):
        text, data = program
        screen.write_json(data) if screen.json else screen.write(text)
        return 0
    programs = programs_of(program, request)
    stage = stage_of(request)
    target = _target(request.one("--target"), stage, programs[0])
    if screen.json:
        answers = all_of(programs, lambda each: _data(each, stage, target))
        screen.write_json({"definitions": answers} if len(answers) > 1 else answers[0])
        return 0
    shown = 0

    def show(program: ProgramAtShapes) -> None:
        nonlocal shown
        title = program.title() if len(programs) > 1 else ""
        page = (
            program.page(request.has("--verbose"), MACHINES[target])
            if stage is None
            else program.text(stage, target).rstrip("\n") + "\n"
        )
        screen.write("\n\n" if shown else "")
        if isinstance(page, str) or request.has("--verbose"):
            screen.write(f"{title}\n\n" if title else "")
            screen.write(page) if isinstance(page, str) else screen.listing(page)
        else:
            _show_first(page, request, screen)
        shown += 1

    all_of(programs, show)
    return 0


def _write_page(argument: str, request: Request, screen: Screen) -> int:
    """Write the page on the one program of an operand for a browser."""
    from ilang.codegen.components.html_page import html_page, write_html_page

    for other in ("--json", "--emit", "--loops", "--schedule", "--why", "--verbose", "--ascii"):
        if request.has(other):
            message = f"--html has a page of everything, and {other} says how to print a part"
            raise CommandError("E0830", message, help=f"leave {other} out, or --html")
    kind = "a code" if is_code(argument) else "a sign" if sign_page(argument) else ""
    if kind and not (request.plain or is_file(argument)):
        message = f"--html has the page of a program, and {argument} is {kind}"
        raise CommandError("E0830", message, help=f"i explain '{argument}'")
    program = one_program(argument, request)
    target = request.one("--target") or "c"
    place, given = request.one("--html") or "", request.has("--shape")
    if place == "-":
        page = html_page(program.graph(), program.shaped(), target, given)
        screen.write_bytes(page.encode())
    else:
        write_html_page(place, program.graph(), program.shaped(), target, given)
    return 0


def _program(argument: str, request: Request) -> Tree | Module | Page:
    """The program that an operand means; or the page on a code, on a sign, or on a word.

    A word that names a program, too, means that where shapes or a stage of it are asked for.

    Raises: Error (it is neither).
    """
    if is_code(argument) and not is_file(argument):
        return answer(argument)
    if request.plain:
        return open_program(argument)
    named = not (request.has("--shape") or request.has("--emit"))
    is_word = bool(WORD.fullmatch(argument)) and not is_file(argument)
    page = sign_page(argument) if argument != "-" else None
    page = None if page is not None and _is_plain_file(argument) else page
    page = word_page(argument) if page is None and is_word and named else page
    if page is not None:
        return page
    try:
        return open_program(argument)
    except Error as error:
        page = word_page(argument) if is_word else None
        if page is not None:
            return page
        if is_word and " " in argument:
            message = f"there is no definition named `{argument}`"
            raise CommandError("E0401", message, help=near(argument)) from None
        is_pattern = error.help.startswith("name the output")
        raise error.with_help(near(argument)) if is_word and not is_pattern else error from None


def _is_plain_file(argument: str) -> bool:
    """Whether a file has the name of a sign; a folder that has it cannot be meant."""
    from pathlib import Path

    return Path(argument).is_file()


def _show_first(page: Explanation, request: Request, screen: Screen) -> None:
    """Print the first page, or how the program runs."""
    from ilang.core.explain.first_page import first_page, loops_page

    width = whole_number(request, "--width", screen.columns(), least=40)
    shown = loops_page if request.has("--loops") else first_page
    screen.write_page(shown(page, width, request.has("--ascii")))


def _target(written: str | None, stage: str | None, program: ProgramAtShapes) -> str:
    """The target that is meant: the one that is named, or the first one that has the stage.

    Raises: CommandError E0804 if the target that is named has no such stage.
    """
    if stage == GRADIENTS.stage and isinstance(program, ComponentAtShapes):
        message = f"{stage} is a stage of tensor functions and routines, `op` and `cd`"
        raise CommandError("E0804", message, help="`i grad` prints the gradient of a component")
    everywhere = (None, WRITTEN, WHY, GRADIENTS.stage)
    names = [
        name
        for name, machine in MACHINES.items()
        if stage in (*everywhere, name, *stages_of(machine))
    ]
    if written is None or written in names:
        return written or names[0]
    raise CommandError(
        "E0804",
        f"--target {written} has no stage {stage}",
        help=f"that is a stage of --target {names[0]}",
    )


def _data(program: ProgramAtShapes, stage: str | None, target: str) -> dict[str, object]:
    """The answer for one program as a JSON-ready object."""
    if stage is None:
        return program.data(MACHINES[target])
    if stage == WHY:
        from ilang.core.explain.page import as_data
        from ilang.core.pipeline import why

        reasons = as_data(why(program.shaped(), MACHINES[target]))
        assert isinstance(reasons, dict)
        return {"name": program.name, **reasons}
    shown = "schedule" if stage == WRITTEN and isinstance(program, DefinitionAtShapes) else stage
    return {"name": program.name, "emit": shown, "text": program.text(stage, target)}


COMMAND = Command(
    "explain",
    "Show what a program computes, with its loops and its work; or explain an error code.",
    run,
    (CommandOperand("program", "[TEXT|FILE|CODE|SIGN|WORD|-]", "program or code", required=False),),
    (
        Option.of_definition("Explain this definition; default: those that no other definition uses"),
        SHAPE,
        CONFIG,
        Option("--target", "TARGET", "The machine to compile for", tuple(MACHINES)),
        Option("--html", "FILE", "Write a page for a browser, `-` on standard output: formulas, data flow, loops and"
               " code side by side, and every stage"),
        Option("--loops", None, "Print how the program runs: its loops, tiles and vectors"),
        Option("--emit", "STAGE", "Print one stage of the compiler instead", EMITTED),
        Option("--schedule", None, "Print the schedule, as it can be written in the program"),
        Option("--why", None, "Print why loops are as they are: the best tiles of each contraction, and their"
               " prices"),
        Option("-v --verbose", None, "Print every step, the loops that run, and how every extent was found"),
        Option("--ascii", None, "Write formulas without characters beyond ASCII: sum_k, *"),
        Option("--width", "N", "Columns of the page; default: those of the terminal, 80 in a pipe"),
        JSON,
    ),
    "TEXT is a program, FILE a file of definitions, and `-` standard input; without any, what can be explained.\n\n"
    "\b\nExamples:\n  i explain 'ik*kj~ijk >> +ijk~ij' --shape 64x32,32x16\n"
    "  i explain model.i --emit c\n"
    "  i explain '>'      a sign; after -- it is a program\n"
    "  i explain sum      a function of NumPy; `i explain numpy` lists all\n"
    "  i explain warp     a word of programs, training, C or GPUs; `i explain` lists all\n"
    "  i explain E0103    an error; `i explain codes` lists all",
)  # fmt: skip
