"""``i run``: a program on arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, Error, counted
from ilang.icli import definitions
from ilang.icli.command import (
    CONFIG,
    EMULATE,
    SHAPE,
    TARGET,
    THREADS,
    Command,
    CommandOperand,
    Option,
    Request,
    seed_of,
    target_of,
    threads_of,
)
from ilang.icli.programs import Subject, named_results, one_subject, open_program
from ilang.icli.screen import Screen

if TYPE_CHECKING:
    from ilang.codegen.session.function import Function
    from ilang.codegen.system.npy import Array
    from ilang.core.ir.syntax import Module, Tree


FOR_FUNCTIONS = ("--shape", "--config", "--load", "--seed")
"""The options that components have no use for."""


def run(request: Request, screen: Screen) -> int:
    """Run a component, a tensor function or a routine on the arrays; print what it gives, or save it."""
    target = target_of(request)
    text, *operands = request.operands
    _refuse_twice(text, operands)
    program, name = _program(text, operands), request.one("--def")
    _refuse_names(program, operands)
    _check_files(request, program, operands)
    functions = definitions.functions_of(program, name)
    if functions:
        named = _function(definitions.one_function(functions), request, operands, target, screen)
    else:
        subject = one_subject(program, name)
        _refuse_settings(request)
        named = _component(subject, request, operands, target)

    from ilang.icli.results import show

    show(named, request, screen)
    return 0


def _program(text: str, operands: Sequence[str]) -> Tree | Module:
    """The program; where it is spelled as in Python, the error says what to type in the REPL."""
    try:
        return open_program(text)
    except Error as error:
        if not error.code.startswith("E01") or (error.help or "").startswith("write "):
            raise
        lines = _typed_in_repl(text, operands)
        if lines is None:
            raise
        help_line = f"in `i repl`, where arrays have names: {lines}"
        raise error.with_help(help_line) from None


def _refuse_twice(text: str, operands: Sequence[str]) -> None:
    """Refuse standard input as the program and as an array. Raises: CommandError E0829."""
    if text == "-" and any(re.fullmatch(r"(.*[=:])?-", each) for each in operands):
        message = "standard input is the program, and it cannot be an array as well"
        raise CommandError("E0829", message, help="name a file in the place of one `-`")


def _refuse_names(program: Tree | Module, operands: Sequence[str]) -> None:
    """Refuse a definition of the program where its first array belongs. Raises: CommandError E0818."""
    from ilang.core.ir.syntax import Module

    names = [each.name for each in program.named()] if isinstance(program, Module) else []
    if operands and operands[0] in names:
        message = f"{operands[0]} is a definition, and an array belongs here"
        raise CommandError("E0818", message, help=f"--def {operands[0]} runs it")


def _component(
    subject: Subject, request: Request, operands: Sequence[str], target: str
) -> list[tuple[str, Array]]:
    from ilang.icli.arrays import arrays_of, in_order
    from ilang.icli.results import form_of

    graph, threads = subject.graph, threads_of(request)
    form_of(request, len(graph.outputs))
    inputs = graph.input_names()
    arrays = arrays_of(subject.graph.written_dtypes(), in_order(inputs, operands))
    answer = subject.component()(*arrays, target=target, threads=threads)
    return named_results(graph.output_names(graph.outputs), answer)


def _function(
    function: Function, request: Request, operands: Sequence[str], target: str, screen: Screen
) -> list[tuple[str, Array]]:
    """The results of one run of a tensor function or a routine for arrays, by name."""
    from ilang.codegen.session.given_shapes import batch_remark
    from ilang.icli.arrays import arrays_of, in_order
    from ilang.icli.results import form_of

    head = definitions.head_of(function)
    shapes = definitions.shapes_of(request.all("--shape"), [function])
    config = definitions.config_of(request.all("--config"), [head])
    seed, threads = seed_of(request), threads_of(request)
    texts = in_order([each.name for each in head.tensors], operands)
    arrays = arrays_of([each.dtype for each in head.tensors], texts)
    session = function.session(shapes, config, seed=seed, target=target, threads=threads)
    session.fit(*arrays)
    for each, array in zip(head.tensors, arrays, strict=True):
        remark = batch_remark(each.name, array.shape, each.shape)
        if remark and each.name not in shapes:
            screen.note(remark)
    for note in session.loss_notes():
        screen.complain(note)
    form_of(request, len(session.outputs))
    if not session.outputs:
        screen.note(definitions.NOTHING_RETURNED)
    checkpoint = request.one("--load")
    if checkpoint is not None:
        session.load(checkpoint)
    elif len(session.parameters) and not request.has("--seed"):
        count = counted(len(session.parameters), "parameter")
        screen.note(
            f"{count} of {function.name} with random values: --load FILE takes trained ones"
        )
    return named_results(session.outputs, session(*arrays))


def _refuse_settings(request: Request) -> None:
    """Refuse options of tensor functions and routines beside a component. Raises: CommandError E0827."""
    for option in FOR_FUNCTIONS:
        if request.has(option):
            message = f"{option} is for tensor functions and routines, and this is a component"
            raise CommandError(
                "E0827", message, help="a component needs its arrays alone: i run TEXT x.npy"
            )


def _check_files(request: Request, program: Tree | Module, operands: Sequence[str]) -> None:
    """Refuse a place for results where what this command reads is, or a file of another kind.

    Raises: DataError E0768.
    """
    place = request.one("-o")
    if place is None or place == "-":
        return
    from ilang.codegen.system.outputs import check_outputs
    from ilang.icli.arrays import files_of
    from ilang.icli.results import kind_of

    loaded = [("--load", each) for each in request.all("--load")]
    inputs = [*definitions.files_read(program), *files_of(operands), *loaded]
    kind = kind_of(place)
    check_outputs([("-o", place, kind)] if kind else [], inputs)


COMMAND = Command(
    "run",
    "Run a program on arrays and print the results.",
    run,
    (
        CommandOperand("program", "TEXT|FILE|-", "program"),
        CommandOperand("arrays", "[ARRAY...]", "array", required=False, nargs=-1),
    ),
    (
        Option.of_definition("Run this definition of the file; default: the one that no other definition uses"),
        SHAPE,
        CONFIG,
        Option("--load", "FILE", "Read parameters and state from a checkpoint of i train or s.save", "array"),
        Option("--seed", "N", "Seed of the random initial parameters; default: 0"),
        Option("-o", "FILE", "Save the results: out.npy or out.csv for one, out.npz or out.json for several;"
               " - is standard output", "array"),
        Option("--csv", None, "Print the result as CSV"),
        Option("--json", None, "Print the results, or the error, as one JSON object (docs/json.md)"),
        Option("--precision", "N", "Digits after the point; default: 6, and all in CSV and JSON"),
        Option("--all", None, "Print every element of large arrays"),
        THREADS,
        TARGET,
        EMULATE,
    ),
    "TEXT is a program, FILE a file of definitions. `-` is standard input: the program, or one array as npy,"
    " CSV or JSON.\n\n"
    "ARRAY is x.npy, x.npz:name, x.csv, x.json, a literal such as [[1,2],[3,4]] or 0.5, or rand:32x64: random"
    " numbers in [0,1), the same every time; zeros(2,3), ones(4), full(2,3,0.5), eye(3), arange(10) and"
    " linspace(0,1,5) are those of NumPy. All but .npy and .npz have the type that the program writes, else f32;"
    " i64:[1,2] and f64:rand:8 give the type. x=x.npy is the array of the input x.\n\n"
    "\b\nExamples:\n  i run '+ij~i' '[[1,2],[3,4]]'\n  i run model.i x.npy y.npy -o out.npy\n"
    "  i run attention.i k=k.npy v=v.npy q=q.npy\n  cat x.csv | i run '+ij~i' - --csv",
)  # fmt: skip


def _typed_in_repl(text: str, operands: Sequence[str]) -> str | None:
    """The lines of the REPL that do what Python's spelling means of arrays; None where it is none, or nothing does.

    Names of arrays are those of the text that no call has, in the order in which they stand there.
    """
    from ilang.icli.arithmetic import NotReadError, ProgramsAtHand
    from ilang.icli.array_functions import UnknownNameError
    from ilang.icli.arrays import arrays_of
    from ilang.icli.python_nodes import expression_of, value_names
    from ilang.icli.session import ReplSession

    tree = expression_of(text)
    names = [] if tree is None else value_names(tree)
    if not names or len(names) != len(operands) or "-" in operands:
        return None
    session = ReplSession()
    try:
        arrays = arrays_of([None] * len(names), operands)
        if all(1 < len(name) == array.ndim for name, array in zip(names, arrays, strict=True)):
            return None  # `ij+ij`: patterns of these arrays, whose output is missing
        session.arrays = dict(zip(names, arrays, strict=True))
        steps = ProgramsAtHand(session).steps(text)
    except (Error, UnknownNameError, NotReadError):
        return None
    if steps is None:
        return None
    given = [f"{name} = {operand}" for name, operand in zip(names, operands, strict=True)]
    *above, last = steps
    lines = [*given, *(f"{each.name} = {each.line()}" for each in above), last.line()]
    return ", then ".join(f"`{line}`" for line in lines)
