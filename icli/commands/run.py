"""``i run``: a program on arrays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ilang.core.diagnostic import CommandError, counted
from ilang.icli import definitions
from ilang.icli.command import (
    CONFIG,
    EMULATE,
    TARGET,
    Command,
    CommandOperand,
    Option,
    Request,
    seed_of,
    target_of,
)
from ilang.icli.programs import Subject, one_subject, open_program
from ilang.icli.screen import Screen

if TYPE_CHECKING:
    from ilang.codegen.runtime.function import Function
    from ilang.codegen.runtime.npy import Array
    from ilang.core.ir.syntax import Module, Tree


FOR_FUNCTIONS = ("--shape", "--config", "--load", "--seed")
"""The options that components have no use for."""


def run(request: Request, screen: Screen) -> int:
    """Run a component, a tensor function or a routine on the arrays; print what it gives, or save it."""
    target = target_of(request)
    place = request.one("-o")
    text, *operands = request.operands
    program, name = open_program(text), request.one("--def")
    _check_files(request, program, operands)
    functions = definitions.functions_of(program, name)
    if functions:
        named = _function(definitions.one_function(functions), request, operands, target, screen)
    else:
        _refuse_settings(request)
        named = _component(one_subject(program, name), operands, target, place)

    from ilang.icli.arrays import save
    from ilang.icli.values import array_text

    if place is not None:
        save(place, named)
        return 0
    width = screen.width(sys.stdout)
    screen.write("\n".join(array_text(name, array, width) for name, array in named))
    return 0


def _component(
    subject: Subject, operands: Sequence[str], target: str, place: str | None
) -> list[tuple[str, Array]]:
    """The results of a component for arrays, by name."""
    _check_place(place, len(subject.graph.outputs))
    from ilang.icli.arrays import arrays_of

    arrays = arrays_of(subject.written_dtypes(), operands)
    answer = subject.component()(*arrays, target=target)
    answers = answer if isinstance(answer, tuple) else (answer,)
    names = subject.graph.output_names(subject.graph.outputs)
    return list(zip(names, answers, strict=True))


def _function(
    function: Function, request: Request, operands: Sequence[str], target: str, screen: Screen
) -> list[tuple[str, Array]]:
    """The results of one run of a tensor function or a routine for arrays, by name."""
    from ilang.codegen.runtime.given_shapes import batch_remark
    from ilang.icli.arrays import arrays_of

    head = definitions.head_of(function)
    shapes = definitions.shapes_of(request.all("--shape"), [function])
    config = definitions.config_of(request.all("--config"), [head])
    seed = seed_of(request)
    arrays = arrays_of([each.dtype for each in head.tensors], operands)
    session = function.session(shapes, config, seed=seed, target=target)
    session.fit(*arrays)
    for each, array in zip(head.tensors, arrays, strict=True):
        remark = batch_remark(each.name, array.shape, each.shape)
        if remark and each.name not in shapes:
            screen.note(remark)
    for note in session.loss_notes():
        screen.complain(note)
    _check_place(request.one("-o"), len(session.outputs))
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
    return definitions.named_results(session, session(*arrays))


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
    if place is None:
        return
    from ilang.codegen.runtime.outputs import InputFile, OutputFile, check_outputs
    from ilang.icli.arrays import files_of, kind_of_results

    loaded = [InputFile("--load", each) for each in request.all("--load")]
    inputs = [*definitions.files_read(program), *files_of(operands), *loaded]
    check_outputs([OutputFile("-o", place, kind_of_results(place))], inputs)


def _check_place(place: str | None, outputs: int) -> None:
    """Refuse a file, if one is named, that cannot hold the answer, before anything runs.

    Raises: CommandError E0812.
    """
    if place is None:
        return
    if not place.endswith((".npy", ".npz")):
        message = f"-o {place or '(empty)'} must end in .npy or .npz"
        raise CommandError("E0812", message, help=f"-o out.{'npy' if outputs == 1 else 'npz'}")
    if outputs != 1 and place.endswith(".npy"):
        raise CommandError("E0812", f"{outputs} outputs do not fit a .npy", help="-o out.npz")


COMMAND = Command(
    "run",
    "Run a program on arrays and print the results.",
    run,
    (
        CommandOperand("program", "TEXT|FILE|-", "program"),
        CommandOperand("arrays", "[ARRAY...]", "array", required=False, nargs=-1),
    ),
    (
        Option(("--def",), "NAME", "Run this definition of the file; default: the one that no other definition uses",
               "definition"),
        Option(("--shape",), "NAME=SHAPE", "Shape of an input of an `op` or `cd`, batch|features: x=64|784; without it,"
               " axis 0 is the batch", many=True),
        CONFIG,
        Option(("--load",), "FILE", "Read parameters and state from a checkpoint of i train or s.save", "array"),
        Option(("--seed",), "N", "Seed of the random initial parameters; default: 0"),
        Option(("-o",), "FILE", "Save the results: out.npy for one, out.npz for several", "array"),
        TARGET,
        EMULATE,
    ),
    "TEXT is a program, FILE a file of definitions, and `-` standard input.\n\n"
    "ARRAY is x.npy, x.npz:name, a literal such as [[1,2],[3,4]] or 0.5, or rand:32x64: random"
    " numbers in [0,1), the same every time. Literals and random numbers have the type that the"
    " program writes, else f32; i64:[1,2] and f64:rand:8 give the type.\n\n"
    "\b\nExamples:\n  i run '+ij~i' '[[1,2],[3,4]]'\n  i run model.i x.npy y.npy -o out.npy",
)  # fmt: skip
