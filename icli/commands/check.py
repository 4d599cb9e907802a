"""``i check``: everything that can be known about a program before it meets data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ilang.core.diagnostic import Error, ScheduleError, ShapeError, as_object
from ilang.core.ir.graph import UNNAMED, Graph
from ilang.core.ir.shaped import Shaped
from ilang.core.ir.syntax import Module, Tree
from ilang.core.machine import MACHINES
from ilang.icli.command import CONFIG, JSON, SHAPE, Command, CommandOperand, Option, Request
from ilang.icli.definitions import (
    all_functions,
    checked_line,
    checked_rows,
    config_of,
    functions_of,
    given_to,
    head_of,
    heads_of,
    settings_of,
    used_in,
)
from ilang.icli.folders import one_or_files
from ilang.icli.programs import chosen, defined, expressed, open_program, subjects
from ilang.icli.screen import Screen
from ilang.icli.shapes import named_shapes, parse_shape

if TYPE_CHECKING:
    from ilang.codegen.project.checking import ScheduleCheck
    from ilang.codegen.project.emulation import CudaCheck
    from ilang.codegen.session.function import Function
    from ilang.core.build.program import Given

Checks = dict[str, "ScheduleCheck | CudaCheck"]
Checked = tuple[str, Checks, dict[str, object]]
"""A definition in one line, the checks of its schedule and its CUDA, its inputs and outputs as data."""
Check = tuple[str | None, int, bool, Callable[[], Checked]]
"""A definition to check, or the program itself: its name, its expressions, whether it is part of others, the check."""
Shapes = Mapping[str, str]
"""Shapes by the names of inputs."""

USERS_DECIDE = ("E0325", "E0332", "E0333", "E0334", "E0335", "E0336", "E0337", "E0338")
"""Schedules that other extents, other types, or loops around may make legal."""
MOST_OF_PARTS = 10_000
"""Expressions that are checked of definitions that others use, all together: what uses the rest checks them anyway."""


def run(request: Request, screen: Screen) -> int:
    """Check every definition; print a line for each that holds, then a diagnostic for each mistake."""
    paths = one_or_files(request.operands)
    is_one = paths == [*request.operands[:1]]
    files: list[dict[str, object]] = []
    refused: list[Error] = []
    for path in paths:
        try:
            answers, errors = _program(path, request, screen, "" if is_one else f"{path}: ")
        except Error as error:
            if is_one:
                raise
            answers, errors = [{"name": None, "error": as_object(error)}], [error]
        files.append({"file": path, "ok": not errors, "definitions": answers})
        refused += errors
    answer = {"definitions": files[0]["definitions"]} if is_one else {"files": files}
    return screen.verdict(answer, refused)


def _program(
    path: str, request: Request, screen: Screen, before: str
) -> tuple[list[dict[str, object]], list[Error]]:
    """Check a program: what is found of each definition, and the refusals.

    A line, which begins with the text ``before``, is printed for each definition that holds.

    Raises: Error (the program cannot be read).
    """
    program, name = open_program(path), request.one("--def")
    if name is not None and not functions_of(program, name):
        chosen(program, (name,))
    shapes = _shapes(program, request.all("--shape"), name)
    functions = _functions(program, request, shapes)
    answers: list[dict[str, object]] = []
    refused: list[Error] = []
    components = _components(program, request.one("--target") or "c", shapes, name)
    all_checks = (*_affordable(components), *_affordable(functions))
    for title, work in [each for each in all_checks if name in (None, each[0])]:
        try:
            line, checks, ends = work()
        except Error as error:
            answers.append({"name": title, "error": as_object(error)})
            refused.append(error)
        else:
            report = {kind: vars(each) for kind, each in checks.items()}
            answers.append({"name": title or UNNAMED, "takes": line, **ends, **report})
            if not screen.json:
                words = (line, *(each.says for each in checks.values()))
                screen.write(f"{before}{'   '.join(words)}\n")
    return answers, refused


def _shapes(program: Tree | Module, options: Sequence[str], name: str | None) -> dict[str, str]:
    """The shapes that options give, by the names of inputs of a definition, or of what nothing else uses.

    Raises: CommandError E0807, E0810, E0811, E0814.
    """
    if not options:
        return {}
    inputs: dict[str, list[str]] = {}
    if isinstance(program, Module):
        heads = heads_of(program)
        inputs = {
            each: [tensor.name for tensor in heads[each].tensors]
            for each in _outermost(program, name)
        }
    with suppress(Error):  # which is told where its definition is checked
        if not isinstance(program, Module) or program.definitions:
            names = () if name is None or name in inputs else (name,)
            inputs |= {
                each.graph.name: each.graph.input_names() for each in subjects(program, names)
            }
    return named_shapes(options, inputs)


def _outermost(program: Module, name: str | None) -> list[str]:
    """The tensor functions and routines that shapes are of: the named one, or those that nothing else uses."""
    used = used_in(program) if name is None else ()
    return [each for each in heads_of(program) if name in (None, each) and each not in used]


def _affordable(checks: Iterable[Check]) -> Iterator[tuple[str | None, Callable[[], Checked]]]:
    """Checks by name; those of parts of others are left out once these have too many expressions together."""
    from ilang.core.limits import MOST_LEAVES

    left = MOST_OF_PARTS
    for name, count, is_part, work in checks:
        if is_part and left < count <= MOST_LEAVES:
            line = f"{name} of {count:,} expressions: checked in what uses it"
            yield name, partial(_left_out, line)
        else:
            left -= count if is_part and count <= left else 0
            yield name, work


def _left_out(line: str) -> Checked:
    return line, {}, {}


def _functions(program: Tree | Module, request: Request, shapes: Shapes) -> list[Check]:
    """The tensor functions and the routines of a file; shapes are those of what nothing else in it uses."""
    if not isinstance(program, Module):
        return []
    from ilang.core.build.counting import least_expressions

    heads, outermost = heads_of(program), _outermost(program, request.one("--def"))
    config = config_of(request.all("--config"), list(heads.values()))
    functions = all_functions(program, list(heads))
    tensors = {each.name for name in outermost for each in heads[name].tensors}
    known = {name: checked_rows(name, text) for name, text in shapes.items() if name in tensors}
    counts = least_expressions(program.functions, program.routines)

    def work(function: Function) -> Checked:
        given = given_to(function, known) if function.name in outermost else {}
        ends = _ends_of(function, given, config) if request.has("--json") else {}
        return checked_line(function, given, config), {}, ends

    names = [each.name for each in functions]
    return [
        (name, counts[name], name not in outermost, partial(work, function))
        for name, function in zip(names, functions, strict=True)
    ]


def _components(
    program: Tree | Module, target: str, shapes: Shapes, chosen_name: str | None
) -> Iterator[Check]:
    """The components to check, in the order written; shapes are those of the chosen one, or of all exported ones."""
    if not isinstance(program, Module):
        yield None, 0, False, lambda: _checked(expressed(program).graph, False, target, shapes)
        return
    from ilang.core.notation.files.module import exports
    from ilang.core.pipeline import definitions_of

    definitions = definitions_of(program)
    exported = {definition.name for definition in exports(program)} | {chosen_name}
    file = program.source.name  # what comes from a library is checked in what uses it

    def work(name: str, is_part: bool) -> Checked:
        graph = defined(program, name, definitions).graph
        return _checked(graph, is_part, target, {} if is_part else shapes)

    for name, definition in definitions.items():
        if definition.span.source.name == file:
            is_part = name not in exported
            count = definitions.leaves(definition.body)
            yield name, count, is_part, partial(work, name, is_part)


def _checked(graph: Graph, is_part: bool, target: str, shapes: Shapes) -> Checked:
    """A component in one line, and how its schedule was checked; for CUDA its kernels too, on the emulator."""
    from ilang.codegen.project.checking import check_schedules
    from ilang.core.explain.page import ends_of, equal_names

    fixed = {name: parse_shape(shapes[name]) for name in graph.input_names() if name in shapes}
    line, shaped = describe(graph, is_part, target, fixed)
    if shaped is None:
        names = [{"name": name, "dtype": None, "shape": None} for name in graph.input_names()]
        return line, {}, {"inputs": names}
    schedule, remark = check_schedules(shaped), equal_names(graph, shaped)
    line = f"{line}   {remark}" if remark else line
    report: Checks = {} if schedule is None else {"schedule": schedule}
    if target == "cuda":
        from ilang.codegen.project.emulation import check_cuda

        report["cuda"] = check_cuda(shaped)
    return line, report, ends_of(shaped, graph.output_names(graph.outputs))


def _ends_of(function: Function, shapes: Shapes, config: Mapping[str, Given]) -> dict[str, object]:
    """The inputs of a tensor function or a routine as data; with shapes, its outputs too."""
    from ilang.core.explain.page import ends_data

    head = head_of(function)
    if shapes or not head.tensors:
        page = function.explain(shapes, settings_of(head, config)).program
        return {"inputs": ends_data(page.inputs), "outputs": ends_data(page.outputs)}
    return {"inputs": [{"name": e.name, "dtype": e.dtype, "shape": None} for e in head.tensors]}


def describe(
    graph: Graph,
    is_part: bool,
    target: str = "c",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[str, Shaped | None]:
    """A component in one line, ``attention(q[m,d], k[n,d], v[n,d]) -> [m,d]``, and what was inferred of it.

    ``shapes`` are those of some of its inputs.

    A component may be of any rank; the schedule of a part of others may be legal only inside its users.

    Raises:
        Error: what is wrong with it, whoever uses it.
    """
    from ilang.codegen.project.checking import has_schedules
    from ilang.codegen.project.render import fixed
    from ilang.core.explain.page import signature
    from ilang.core.pipeline import infer, lower

    try:
        shaped = fixed(graph, shapes) if shapes else infer(graph)
    except ShapeError as error:
        if error.code != "E0508":
            raise
        inputs = graph.input_names()
        return f"{graph.name}({', '.join(inputs)}) of any rank", None
    try:
        if has_schedules(shaped):
            lower(shaped, MACHINES[target])
    except ScheduleError as error:
        if not is_part or not (error.within or error.code in USERS_DECIDE):
            raise
        return (
            f"{signature(shaped)}   schedule for its users alone: {error.code} without them",
            None,
        )
    return signature(shaped), shaped


COMMAND = Command(
    "check",
    "Check every definition: syntax, connections, shapes, types, schedules; print its inputs and outputs.",
    run,
    (CommandOperand("program", "TEXT|FILE|FOLDER|-...", "program", required=True, nargs=-1),),
    (
        Option.of_definition("Check this definition of a file alone"),
        JSON,
        Option("--target", "TARGET", "cuda: also run the CUDA on an emulated GPU, and find races", ("c", "cuda")),
        SHAPE,
        CONFIG,
    ),
)  # fmt: skip
